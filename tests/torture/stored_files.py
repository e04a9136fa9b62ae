"""Finished campaign, and damage to each of its stored files: words, no traceback, no harm."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.command_line import call
from tests.real import measure
from tests.torture.damaged_texts import damaged_texts
from volbench.cli.main import VERBS

_VERBS = ("show", "check", "export", "resume", "reap", "verify")
_STATUSES = {0, 2, 3, 6, 7, 9, 10}
"""Of errors and findings that volbench has words for."""
_EXAMPLES = 4


@cache
def finished_campaign() -> Path:
    """Return a campaign that was measured once for all cases."""
    folder = Path(tempfile.mkdtemp(prefix="torture-campaign-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return measure(folder, "c", "runtime=200ms", "time_based=1")


def stored_files() -> tuple[Path, ...]:
    """Return the paths of all files of the campaign, relative to it."""
    root = finished_campaign()
    return tuple(sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file()))


def damaged_file(chance: random.Random, folder: Path) -> int:
    """Damage one stored file in several ways, and give the campaign to every verb that reads it.

    Returns:
        The number of calls.
    """
    victim = chance.choice(stored_files())
    content = (finished_campaign() / victim).read_bytes()
    copies = _copies(folder)
    calls = 0

    @seed(chance.getrandbits(64))
    @settings(
        max_examples=_EXAMPLES,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged_texts([content]))
    def check(damaged: bytes) -> None:
        nonlocal calls
        copy = next(copies)
        (copy / victim).write_bytes(damaged)
        for verb in sorted(VERBS.keys() & set(_VERBS)):
            more = ("--output", folder / "x.csv", "--force") if verb == "export" else ()
            done = call(verb, copy, *more)
            said = f"{verb} after damage to {victim}: {done.returncode} {done.stderr}"
            assert done.returncode in _STATUSES, said
            assert done.returncode in {0, 10} or done.stderr, said
            calls += 1

    check()
    return calls


def _copies(folder: Path) -> Iterator[Path]:
    """Yield copies of the campaign, one at a time."""
    copy = folder / "copy"
    while True:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(finished_campaign(), copy)
        yield copy
