"""A host may hold runs back, as a pod does whose volume is being expanded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import call
from volbench.execute.local import LocalExecutor

PROFILE = "name: tiny\njobs: {a: {rw: read, bs: 4k, size: 64k, ioengine: psync}}\n"


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Write a profile of one job, and return the arguments that run it here."""
    profile = tmp_path / "tiny.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    return ["run", str(profile), "--on", str(tmp_path), "-o", str(tmp_path / "c")]


def answers(monkeypatch: pytest.MonkeyPatch, *reasons: str) -> None:
    """Let this machine give each reason in turn, then always the last one."""
    left = [*reasons]
    monkeypatch.setattr(
        LocalExecutor, "held_back", lambda _self: left.pop(0) if len(left) > 1 else left[0]
    )


def test_a_run_waits_as_long_as_its_host_says(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is said once, and the run follows."""
    answers(monkeypatch, "it is busy", "it is busy", "")
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("waits: it is busy") == 1


def test_a_run_does_not_wait_longer_than_it_may_be_late(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts, and the user is told that the reason still holds."""
    answers(monkeypatch, "it is busy")
    done = call(*arguments, "--grace", "5s")
    assert done.returncode == 0, done.stderr
    assert "no longer waits: it is busy" in done.stderr
