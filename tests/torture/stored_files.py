"""Finished campaign, and damage to each of its stored files: words, no traceback, no harm."""

import atexit
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.command_line import call
from tests.damage import damaged
from tests.real import measure
from volbench.store.log_files import open_log

_VERBS = ("show", "check", "export", "resume", "status --clean", "check --files")
_STATUSES = {0, 2, 3, 6, 7, 9, 10}
"""Of errors and findings that volbench has words for."""
_VERIFIED = {"runs", "campaign.json"}
"""Files and folders in which `volbench check --files` finds every change. A cut journal is
that of a crash, and the stamp of tables only says when to compute them again."""
_VARIANTS = 4


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
    """Damage one stored file in several ways, and give the campaign to every verb that reads it."""
    victim = chance.choice(stored_files())
    content = (finished_campaign() / victim).read_bytes()
    variants = [v for _, v in damaged(content, seed=chance.getrandbits(32), variants=8)]
    copies = _copies(folder)
    calls = 0
    for variant in chance.sample(variants, min(_VARIANTS, len(variants))):
        copy = next(copies)
        (copy / victim).write_bytes(variant)
        for verb in _VERBS:
            more = ("--output", folder / "x.csv", "--force") if verb == "export" else ()
            done = call(*verb.split(), copy, *more)
            said = f"{verb} after damage to {victim}: {done.returncode} {done.stderr}"
            assert done.returncode in _STATUSES, said
            assert done.returncode in {0, 10} or done.stderr, said
            if verb == "check --files" and victim.parts[0] in _VERIFIED:
                assert done.returncode or _is_same(copy / victim, victim), said
            calls += 1
    return calls


def _is_same(path: Path, victim: Path) -> bool:
    """Return whether a file has its content still: there are several compressed forms of it."""
    with open_log(path) as log, open_log(finished_campaign() / victim) as original:
        return log.read() == original.read()


def _copies(folder: Path) -> Iterator[Path]:
    copy = folder / "copy"
    while True:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(finished_campaign(), copy)
        yield copy
