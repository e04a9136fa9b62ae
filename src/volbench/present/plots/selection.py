"""Results that a chart shows: valid ones, and as many as it has room for."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from volbench.analyse.frames.job_frames import measured
from volbench.analyse.significance import needed_samples
from volbench.model.results.finding import Severity
from volbench.present.formatting import records
from volbench.present.plots.kinds import Frames
from volbench.present.tables.summary_table import lower_bound
from volbench.units import counted_noun


def invalid_in(findings: pd.DataFrame) -> pd.Series[str]:
    """Return the runs whose result a finding calls invalid."""
    return findings.loc[findings["severity"] == Severity.INVALID.value, "run"]


def valid_frames(frames: Frames) -> Frames:
    """Return frames without the runs that have an invalid result; themselves if none has."""
    findings = frames.get("findings")
    if findings is None or findings.empty:
        return frames
    invalid = invalid_in(findings)
    if not frames["summary"]["run"].isin(invalid).any():
        return frames
    return {
        name: frame[~frame["run"].isin(invalid)].reset_index(drop=True) if "run" in frame else frame
        for name, frame in frames.items()
    }


def not_shown(drawn: int, total: int, what: str, criterion: str = "the first ones") -> str:
    """Return the sentence of a caption that says what is shown, and of how many; "" for all."""
    if drawn >= total:
        return ""
    rest = total - drawn
    return f"Showing {drawn} of {total:,} {what}, {criterion}: --where shows the other {rest}"


def is_rough(statistic: str, ios: object) -> bool:
    """Return whether fewer than ten of some I/Os are above a percentile, such as ``p999``."""
    digits = statistic.removeprefix("p")
    if not digits.isdigit() or not isinstance(ios, int | float):
        return False
    return ios < needed_samples(float(f"{digits[:2]}.{digits[2:]}")) * (1 - 1e-9)


def in_last_bin(summary: pd.DataFrame, statistics: Iterable[str]) -> str:
    """Return the sentence about percentiles without a value, in fio's last bin; "" for none."""
    found = [
        {lower_bound(row, name) for name in statistics} - {""}
        for row in records(measured(summary).dropna(subset=["impossible"]))
    ]
    results = [bounds for bounds in found if bounds]
    if not results:
        return ""
    count = counted_noun(len(results), "result")
    return f"No exact value to draw: percentiles in fio's last bin ({min(results[0])}) of {count}"
