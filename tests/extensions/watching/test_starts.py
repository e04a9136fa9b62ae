"""Staggered starts on a clock of the test, with real commands."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.waiting import until
from volbench.errors import InputError
from volbench.extensions.watching.starts import QUIET_S, StaggeredStarts, Starts, parse_command


class Clock:
    """A clock that the test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def starts(
    start: str, *, count: int = 3, stagger_s: float = 10.0, until_words: str = ""
) -> tuple[StaggeredStarts, Clock, list[tuple[str, str]]]:
    """Return starts, their clock and their marks."""
    marks: list[tuple[str, str]] = []
    clock = Clock()
    commands = Starts(
        parse_command(start, option="--start"),
        count,
        until=parse_command(until_words, option="--until"),
    )

    def mark(kind: str, text: str) -> None:
        marks.append((kind, text))

    return StaggeredStarts(commands, stagger_s, mark, clock), clock, marks


def test_each_machine_is_started_when_it_is_due() -> None:
    """A loop that was late starts all that are due."""
    staggered, clock, marks = starts("true")
    staggered.step(None)
    assert marks == [("start", "1")]
    clock.now_s += 9.9
    staggered.step(None)
    assert len(marks) == 1
    clock.now_s += 20.2
    staggered.step(None)
    assert marks == [("start", "1"), ("start", "2"), ("start", "3")]
    until(lambda: staggered.step(None) or staggered.are_all_up)


def test_a_storm_ends_once_the_disks_are_quiet() -> None:
    """They must be so for some time, and only after the last machine is up."""
    staggered, clock, _ = starts("true", count=1)
    staggered.step(1000.0)
    until(lambda: staggered.step(50.0) or staggered.are_all_up)
    assert not staggered.step(900.0)
    clock.now_s += QUIET_S - 1
    assert not staggered.step(50.0)
    clock.now_s += 2
    assert staggered.step(50.0)


def test_a_start_that_fails_is_marked() -> None:
    """The storm goes on without it."""
    staggered, _, marks = starts("sh -c 'exit 7'", count=1)
    until(lambda: staggered.step(None) or len(marks) > 1)
    assert marks == [("start", "1"), ("failed", "1 (exit status 7)")]


def test_words_never_reach_a_shell(tmp_path: Path) -> None:
    """Only the number is put in; what a shell would act on stays as it is."""
    file = tmp_path / "a;touch b"
    staggered, _, _ = starts(f"touch '{file}{{n}}'", count=1)
    staggered.step(None)
    until(lambda: staggered.step(None) or staggered.are_all_up)
    assert [path.name for path in tmp_path.iterdir()] == ["a;touch b1"]


def test_a_look_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one may succeed."""
    staggered, clock, marks = starts("true", count=1, until_words="sleep 60")
    staggered.step(None)
    clock.now_s += 2
    staggered.step(None)
    clock.now_s += 31
    staggered.step(None)
    assert marks == [("start", "1")]
    killed: list[object] = []
    real = subprocess.Popen.kill

    def kill(process: subprocess.Popen[bytes]) -> None:
        killed.append(process)
        real(process)

    monkeypatch.setattr(subprocess.Popen, "kill", kill)
    clock.now_s += 2
    staggered.step(None)
    staggered.end()
    time.sleep(0.1)
    assert len(killed) == 1


def test_a_command_that_is_missing_is_an_error() -> None:
    """It is named, as it would have been started."""
    staggered, _, _ = starts("no-such-program {n}", count=1)
    with pytest.raises(InputError, match="no-such-program cannot be started"):
        staggered.step(None)
