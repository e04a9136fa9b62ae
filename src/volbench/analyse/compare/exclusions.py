"""Exclusion of invalid runs from a comparison, and the findings on those that count.

Run ids are the same in both frames.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd

from volbench.model.results.finding import Severity


def without_invalid(rows: pd.DataFrame, findings: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Leave out rows that a rule called invalid.

    Returns:
        The other rows, and a sentence for each side and rule.
    """
    heavy = findings[findings["severity"] == Severity.INVALID.value]
    struck = rows["run"].isin(heavy[heavy["direction"].isna()]["run"])
    named = set(zip(heavy["run"], heavy["direction"], strict=True))
    pairs = zip(rows["run"], rows["direction"], strict=True)
    struck |= pd.Series([pair in named for pair in pairs], index=rows.index, dtype=bool)
    counts = Counter(
        (str(side), str(rule))
        for run, side in rows[struck][["run", "side"]].drop_duplicates().itertuples(index=False)
        for rule in heavy[heavy["run"] == run]["rule"].unique()
    )
    remarks = [
        f"{side}: {count} {'Run is' if count == 1 else 'Runs are'} invalid by {rule}, left out"
        for (side, rule), count in counts.items()
    ]
    return rows[~struck].reset_index(drop=True), remarks


def warnings_of(rows: pd.DataFrame, findings: pd.DataFrame) -> dict[str, int]:
    """Return the rules with findings on these rows, and on how many runs each."""
    direction = rows["direction"].iloc[0]
    about = findings["run"].isin(rows["run"]) & (
        findings["direction"].isna() | (findings["direction"] == direction)
    )
    heavy = findings["severity"] != Severity.NOTE.value
    runs = findings[about & heavy].drop_duplicates(["run", "rule"])
    return {str(rule): int(count) for rule, count in runs["rule"].value_counts().items()}
