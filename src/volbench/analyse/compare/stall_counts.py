"""Exact tests of how many runs stalled: by blocks where both sides share them, else by runs."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from volbench.analyse.significance import sign_p_value, table_p_value
from volbench.model.results.finding import Severity


def stall_remarks(rows: pd.DataFrame, findings: pd.DataFrame, *, base: str) -> Iterator[str]:
    """Yield a sentence for each workload and candidate of which runs stalled on either side.

    Runs are counted, not stalls, which come in bursts. Of blocks in which one side stalled and the
    other did not, either side has half by chance (McNemar, Psychometrika 12, 1947); without blocks
    the test is Fisher's.

    Args:
        rows: of the comparison, with their ``side``, ``run``, ``label`` and ``block``.
        findings: with the runs named as there.
    """
    is_stall = findings["rule"].eq("stall") & findings["severity"].ne(Severity.NOTE.value)
    stalled = set(findings.loc[is_stall, "run"])
    for label, cell in rows.groupby("label", sort=False) if stalled else ():
        name, runs = str(label), cell.drop_duplicates(["side", "run"])
        runs = runs.assign(has_stalled=runs["run"].isin(stalled))
        sides = {str(side): part for side, part in runs.groupby("side", sort=False)}
        for side in [name for name in sides if name != base and base in sides]:
            both = sides[base], sides[side]
            counts = [int(part["has_stalled"].sum()) for part in both]
            if any(counts):
                yield (
                    f"stalls: {counts[1]} of {len(both[1])} runs of {name} in {side},"
                    f" {counts[0]} of {len(both[0])} in {base} (exact test, p ="
                    f" {_p_value(*both):.2g})"
                )


def _p_value(base: pd.DataFrame, candidate: pd.DataFrame) -> float:
    """Return the two-sided probability of so unequal numbers by chance."""
    blocks = [
        part.dropna(subset=["block"]).groupby(["campaign", "block"])["has_stalled"].any()
        for part in (base, candidate)
    ]
    pairs = pd.concat(blocks, axis=1, keys=["base", "candidate"], join="inner").astype(bool)
    if len(pairs):
        sides = pairs["base"], pairs["candidate"]
        only = (int((one & ~other).sum()) for one, other in (sides, sides[::-1]))
        return sign_p_value(*only)
    hits = int(base["has_stalled"].sum()), int(candidate["has_stalled"].sum())
    return table_p_value(hits, (len(base), len(candidate)))
