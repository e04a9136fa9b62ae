"""USE table: utilization, saturation and errors of the device during each run.

USE is a method of Brendan Gregg (2012): for every resource, check utilization, saturation and
errors. Means cover the time in which the tool did I/O; the write-back tail is reported separately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import is_watched, labels
from volbench.analyse.frames.run_view import bytes_before, bytes_until_end, within_run
from volbench.model.frames.column_names import USE
from volbench.model.frames.columns import IDENTITY, Row

_IDENTITY = tuple(column.name for column in IDENTITY if column.name != "group")

# Share of writes that ends the tail: a journal's last block is written seconds later.
# Noticed by: test_use_method.py
_TAIL_END_SHARE = 0.98
# Less than this after the end is not a tail but metadata.
# Noticed by: test_use_method.py::test_less_than_a_megabyte_is_not_write_back
_MIN_TAIL_BYTES = 1e6
# Nor is less than this share of a sample interval, which is within the error of the end itself.
# Noticed by: test_use_method.py
_MIN_TAIL_SHARE = 0.5
# Share of an interval in which a shorter run did I/O, so that what the device did is of the run: a
# run of 2 s ends some hundredths before the second sample. Noticed by: test_use_method.py
_MIN_INSIDE = 0.9
_DIRECTIONS = ("read", "write")
_RATES = tuple(
    f"{direction}_{what}"
    for direction in _DIRECTIONS
    for what in ("iops", "bw_bytes_per_s", "lat_s", "request_bytes")
)
_SHARES = (
    "active_percent",
    "queue_depth",
    "iowait_percent",
    "steal_percent",
    "io_pressure_some_percent",
    "io_pressure_full_percent",
)
# Columns of the device frame in use; selecting rows of all columns is slow
_SAMPLED = (
    *("run", "device", "t_s", "interval_s", "after_fio", *_RATES, *_SHARES),
    *("dirty_bytes", "writeback_bytes", "io_errors"),
)


def use_rows(
    summary: pd.DataFrame, device: pd.DataFrame, verdicts: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return utilization, saturation and errors of the volume's device for each run.

    Args:
        device: the device frame; runs without rows are omitted.

    Returns:
        A row for each run with samples and numbers, in the order of the summary,
        with the columns of `USE`. NaN or a missing value is "unknown".
    """
    sampled = device.loc[device["level"] == "volume", list(_SAMPLED)]
    watched = dict(iter(sampled.groupby("run", sort=False)))
    results = summary[summary["run"].isin(list(watched))]
    rows = results.drop_duplicates("run")
    names = run_labels(rows)
    if not watched:
        return _typed_frame([])
    verdicts_of = {} if verdicts is None else dict(iter(verdicts.groupby("run", sort=False)))
    by_run = dict(iter(results.groupby("run", sort=False)))
    use_of_runs = []
    for (_, first), label in zip(rows.iterrows(), names, strict=True):
        run = first["run"]
        samples = watched[run].sort_values("t_s", ignore_index=True)
        use_of_runs.append(
            {name: first[name] for name in _IDENTITY}
            | {"label": label}
            | _run_row(by_run[run], samples)
            | _bottleneck_columns(verdicts_of.get(run))
        )
    return _typed_frame(use_of_runs)


def run_labels(rows: pd.DataFrame) -> pd.Series[str]:
    """Return a distinct label for each run, independent of its number of sections."""
    return labels(rows.assign(group=rows["job"]))


def fio_end_s(results: pd.DataFrame) -> float:
    """Return the duration of the tool's I/O in seconds; NaN if it reported nothing."""
    is_tool = results["direction"].isin([*_DIRECTIONS, "trim"]) & ~is_watched(results)
    moving = results[is_tool]
    return float(moving["runtime_s"].astype("float64").max())


def _run_row(results: pd.DataFrame, samples: pd.DataFrame) -> Row:
    end_s = fio_end_s(results)
    during = _samples_in_run(samples, end_s=math.inf if math.isnan(end_s) else end_s)
    iops = {f"{direction}_iops": _mean(during, f"{direction}_iops") for direction in _DIRECTIONS}
    rates = {
        f"{direction}_bw_bytes_per_s": _mean(during, f"{direction}_bw_bytes_per_s")
        for direction in _DIRECTIONS
    }
    limit_iops, limit_bw = (_max(results, name) for name in ("limit_iops", "limit_bw_bytes_per_s"))
    direct, names = results["direct"].dropna(), samples["device"].dropna()
    errors = samples["io_errors"].dropna()
    tail_s, tail_bytes = write_back_tail(samples, end_s=end_s)
    return {
        "direct": None if direct.empty else bool(direct.all()),
        "device": None if names.empty else names.iloc[0],
        "runtime_s": _max(results[results["direction"] != "sync"], "runtime_s"),
        **iops,
        "limit_iops": limit_iops,
        "iops_percent": 100 * math.fsum(iops.values()) / limit_iops,
        **rates,
        "limit_bw_bytes_per_s": limit_bw,
        "bw_percent": 100 * math.fsum(rates.values()) / limit_bw,
        **_request_columns(during),
        **{name: _mean(during, name) for name in _SHARES},
        **_dirty_columns(samples, during),
        "tail_s": tail_s,
        "tail_bytes": tail_bytes,
        **_bytes_reached(results, samples, end_s=end_s, is_sampled=not during.empty),
        "dirty_remaining_bytes": _dirty_remaining(results, samples),
        "io_errors": None if errors.empty else int(errors.sum()),
        "error": None if is_watched(results).all() else _max(results, "error"),
    }


def _samples_in_run(samples: pd.DataFrame, *, end_s: float) -> pd.DataFrame:
    """Return the intervals in which the tool did I/O; of a short run those that it nearly fills.

    A shorter one has no rates: most of what was sampled is the I/O of others.
    """
    whole = within_run(samples, runtime=end_s)
    if not whole.empty:
        return whole
    ends_s, widths_s = samples["t_s"], samples["interval_s"]
    inside_s = ends_s.clip(upper=end_s) - (ends_s - widths_s).clip(lower=0)
    return samples[inside_s >= _MIN_INSIDE * widths_s]


def _mean(samples: pd.DataFrame, column: str, *, rate: str = "") -> float:
    values = samples[column].to_numpy(dtype=float)
    shares = samples["interval_s"].to_numpy(dtype=float)
    if rate:
        shares = shares * samples[rate].to_numpy(dtype=float)
    known = ~np.isnan(values) & (shares > 0)
    return float(np.average(values[known], weights=shares[known])) if known.any() else math.nan


def _request_columns(during: pd.DataFrame) -> Row:
    return {
        f"{direction}_{what}": _mean(during, f"{direction}_{what}", rate=f"{direction}_iops")
        for what in ("lat_s", "request_bytes")
        for direction in _DIRECTIONS
    }


def _dirty_columns(samples: pd.DataFrame, during: pd.DataFrame) -> Row:
    """Return the peak of dirty pages, and its rise over the last sample before the run.

    Without such a sample the first of the run is the baseline; a single sample shows no growth.
    """
    before = samples[samples["t_s"] <= 0]["dirty_bytes"].dropna()
    known = during["dirty_bytes"].dropna()
    if known.empty:
        return {"dirty_growth_bytes": math.nan, "dirty_peak_bytes": math.nan}
    peak = float(known.max())
    base = float(before.iloc[-1]) if len(before) else float(known.iloc[0])
    is_known = len(before) or len(known) > 1
    growth = max(0.0, peak - base) if is_known else math.nan
    return {"dirty_growth_bytes": growth, "dirty_peak_bytes": peak}


def write_back_tail(samples: pd.DataFrame, *, end_s: float) -> tuple[float, float]:
    """Return duration and bytes of writes after the tool had ended; NaN if not sampled."""
    after = samples[samples["t_s"] > end_s]
    if after.empty or after["write_bw_bytes_per_s"].isna().all():
        return math.nan, math.nan
    end = after["t_s"].to_numpy(dtype=float)
    until_then, until_last = (
        np.nan_to_num(bytes_before(after, "write_bw_bytes_per_s", end_s=at_s))
        for at_s in (end_s, math.inf)
    )
    moved = until_last - until_then
    total = float(moved.sum())
    last = min(int(np.searchsorted(moved.cumsum(), _TAIL_END_SHARE * total)), len(end) - 1)
    lasted = float(end[last]) - end_s
    if total < _MIN_TAIL_BYTES or lasted < _MIN_TAIL_SHARE * float(after["interval_s"].iloc[last]):
        return 0.0, total
    return lasted, total


def _bytes_reached(
    results: pd.DataFrame, samples: pd.DataFrame, *, end_s: float, is_sampled: bool
) -> Row:
    is_tool = results["direction"].isin(_DIRECTIONS) & ~is_watched(results)
    moved = results[is_tool].dropna(subset=["io_bytes"])
    tool_bytes = float(moved["io_bytes"].astype("float64").sum())
    seen = math.nan
    columns = [f"{direction}_bw_bytes_per_s" for direction in sorted(set(moved["direction"]))]
    if columns and not math.isnan(end_s) and samples[columns].notna().any(axis=None):
        moved_bytes = math.fsum(
            bytes_until_end(samples, column, runtime=end_s) - _laid_out(samples, column)
            for column in columns
        )
        seen = max(0.0, moved_bytes)  # the laying out is extrapolated
    return {
        "tool_bytes": tool_bytes if columns else math.nan,
        "device_bytes": seen,
        "device_share_percent": 100 * seen / tool_bytes
        if tool_bytes > 0 and is_sampled
        else math.nan,
    }


def _dirty_remaining(results: pd.DataFrame, samples: pd.DataFrame) -> float:
    column = "write_bw_bytes_per_s"
    wrote = results[results["direction"] == "write"]["io_bytes"].astype("float64").sum()
    waiting = (samples["dirty_bytes"] + samples["writeback_bytes"]).dropna()
    if waiting.empty or samples[column].isna().all():
        return math.nan
    moved = bytes_until_end(samples, column, runtime=math.inf) - _laid_out(samples, column)
    return max(0.0, min(float(wrote) - moved, float(waiting.iloc[-1])))


def _laid_out(samples: pd.DataFrame, column: str) -> float:
    """Return the bytes written before the I/O began in its first interval.

    The rate is taken from the preceding interval, in which fio laid out its files.
    """
    t_s, interval_s, rate = (
        samples[name].to_numpy(dtype=float) for name in ("t_s", "interval_s", column)
    )
    before, after = np.flatnonzero(t_s <= 0), np.flatnonzero(t_s > 0)
    if not len(before) or not len(after):
        return 0.0
    first = after[0]
    laid_out = max(0.0, float(interval_s[first] - t_s[first])) * float(rate[before[-1]])
    return 0.0 if math.isnan(laid_out) else min(laid_out, float(interval_s[first] * rate[first]))


def _bottleneck_columns(verdicts: pd.DataFrame | None) -> Row:
    if verdicts is None:
        return {}
    known = verdicts.dropna(subset=["bottleneck"])
    if known.empty:
        return {}
    bottlenecks = list(dict.fromkeys(str(word) for word in known["bottleneck"]))
    texts = dict.fromkeys(str(text) for text in known["explanation"].dropna())
    return {
        "bottleneck": ", ".join(bottlenecks),
        "bottleneck_level": float(known["bottleneck_level"].iloc[0])
        if len(known) == 1
        else math.nan,
        "explanation": " | ".join(texts),
    }


def _max(results: pd.DataFrame, column: str) -> float:
    return float(results[column].astype("float64").max())


def _typed_frame(rows: Sequence[Row]) -> pd.DataFrame:
    kinds = {"string": "string", "int": "Int64", "float": "float64", "bool": "boolean"}
    frame = pd.DataFrame(rows, columns=[column.name for column in USE])
    return frame.astype({column.name: kinds[column.dtype] for column in USE})
