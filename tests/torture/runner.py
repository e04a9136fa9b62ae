"""Torture of volbench: random cases of several kinds until the time is over."""

import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from tests.torture.processes import processes_in
from tests.waiting import kill_all, until

_CASE_S = 300.0  # A case that takes longer is interrupted, as by Ctrl-C, and fails.
_LEAVE_S = 60.0  # From one Ctrl-C to the next, and to the end of all processes of the case.

_used: list[Path] = []  # folders of cases

Case = Callable[[random.Random, Path], int]
"""Try one random case in an empty folder; return the number of things checked."""


@dataclass(frozen=True)
class Kind:
    """A kind of cases."""

    name: str  # for ``--only``
    case: Case  # tries one
    share: float = 1.0  # of the time, relative to the other kinds
    least: int = 0  # number of cases of the long form


@dataclass
class Tally:
    """What happened to the cases of a kind."""

    kind: Kind  # the kind
    cases: int = 0  # number of cases tried
    checks: int = 0  # number of things checked in them
    spent_s: float = 0.0  # seconds they took
    # number of each failed case, and its traceback
    failures: dict[int, str] = field(default_factory=dict)

    def try_case(self, seed: str, number: int) -> None:
        """Try a case, and note how it ended."""
        begun = time.monotonic()
        with case_folder() as folder, _interrupted_in_time(folder) as interrupted:
            try:
                self.checks += self.kind.case(chance_of(seed, self.kind, number), folder)
                until(lambda: not processes_in(folder), patience_s=10)
                assert not interrupted.is_set(), f"no end in {_CASE_S:g} s"
            except (Exception, KeyboardInterrupt) as error:
                if isinstance(error, KeyboardInterrupt) and not interrupted.is_set():
                    raise
                left = "\n".join(processes_in(folder).values())
                self.failures[number] = f"{traceback.format_exc()}\nstill there: {left}"
        _used.append(folder)
        for again in filter(Path.exists, _used):
            there = "\n".join(map(str, again.rglob("*")))
            self.failures.setdefault(number, f"{again} stays or was made again: {there}")
        self.cases += 1
        self.spent_s += time.monotonic() - begun


def chance_of(seed: str, kind: Kind, number: int) -> random.Random:
    """Return the source of randomness of a case: it can be tried again by itself."""
    return random.Random(f"{seed} {kind.name} {number}")  # noqa: S311 - a case, no secret


@contextmanager
def case_folder() -> Iterator[Path]:
    """Yield an empty folder that only its owner may write to."""
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        yield folder.resolve()
    finally:
        kill_all(processes_in(folder))
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _interrupted_in_time(folder: Path) -> Iterator[Event]:
    """Interrupt a case that takes too long, as a user would, and note it; kill what stays."""
    is_over, interrupted = Event(), Event()

    def wait() -> None:
        for patience_s in (_CASE_S, _LEAVE_S):
            if is_over.wait(patience_s):
                return
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)  # most cases call volbench in this process
        if not is_over.wait(_LEAVE_S):
            kill_all(processes_in(folder))

    thread = Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield interrupted
    finally:
        is_over.set()
        thread.join()


def torture(
    kinds: Sequence[Kind],
    *,
    seed: str,
    seconds: float,
    long: bool = False,
    first: int = 0,
    say: Callable[[str], None] = print,
) -> list[Tally]:
    """Try cases of each kind in turn."""
    tallies = [Tally(kind) for kind in kinds]
    whole = sum(kind.share for kind in kinds)

    def is_due(tally: Tally) -> bool:
        is_short = long and tally.cases < tally.kind.least
        return not tally.cases or is_short or tally.spent_s < seconds * tally.kind.share / whole

    with suppress(KeyboardInterrupt):  # the figures so far count
        while due := [tally for tally in tallies if is_due(tally)]:
            tally = min(due, key=lambda tally: tally.spent_s / tally.kind.share)
            failed = len(tally.failures)
            tally.try_case(seed, first + tally.cases)
            if len(tally.failures) > failed:
                number, text = next(reversed(tally.failures.items()))
                name = tally.kind.name
                say(f"FAILED: scripts/torture --seed {seed} --only {name} --case {number}\n{text}")
    return tallies


def table(tallies: Sequence[Tally]) -> str:
    """Return what happened, one kind a line."""
    lines = [f"{'kind':10} {'cases':>7} {'checks':>9} {'seconds':>8} {'failed':>7}"]
    lines += [
        f"{tally.kind.name:10} {tally.cases:7} {tally.checks:9} {tally.spent_s:8.0f} "
        f"{len(tally.failures):7}"
        for tally in tallies
    ]
    return "\n".join(lines)
