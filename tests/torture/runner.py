"""Torture of volbench: random cases of several kinds until the time is over."""

import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

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
        with case_folder() as folder:
            try:
                self.checks += self.kind.case(chance_of(seed, self.kind, number), folder)
            except Exception:  # noqa: BLE001 - whatever a case raises is what is looked for
                self.failures[number] = traceback.format_exc()
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
        shutil.rmtree(folder, ignore_errors=True)


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
