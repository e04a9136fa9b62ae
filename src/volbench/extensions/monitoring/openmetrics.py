"""Time series for Prometheus in the OpenMetrics text format.

Metrics of the node exporter keep their names (``node_disk_written_bytes_total``), so that
dashboards and rules made for it work on benchmarks; fio's own view is called ``volbench_*``.
Every sample has its UTC stamp. Format: OpenMetrics 1.0 (openmetrics.io); rules of the
backfill: Prometheus, storage documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from volbench.analyse.frames.resample import once_each, running_sum, seconds
from volbench.errors import InputError
from volbench.extensions.monitoring.node_metrics import (
    BANDWIDTH,
    IOPS,
    JOB,
    LATENCY,
    MEMORY,
    ON_DEVICE,
    ON_HOST,
    RUN,
    Counter,
    Family,
    fit_label,
)
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.present.formatting import records

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset

TIMED = ("device", "series")  # The frames with values over time

_HOST = ["campaign", "host"]
_DEVICE = [*_HOST, "device"]
_STREAM = ["run", "group", "direction"]
_AFTER_S = 0.001
# How often a run's facts are repeated: Prometheus forgets a sample after five minutes
_INFO_S = 60.0

_STATISTICS = ("mean", "p50", "p99", "p999", "max")
_RUN_FACTS = (
    *("run", "profile", "role", "volume", "repeat", "phase", "tool", "rw", "direct"),
    *("block_bytes", "iodepth", "numjobs", "ioengine", "fio_version"),
)


def timed_frames(dataset: Dataset, name: str | None) -> dict[str, pd.DataFrame]:
    """Return the summary and the frames with values over time, or one of these by name."""
    names = [name] if name in TIMED else TIMED
    return {frame: dataset.frame(str(frame)) for frame in (*names, "summary")}


def export_metrics(dataset: Dataset, name: str | None) -> str:
    """Return the OpenMetrics text of campaigns; of one frame if that has values over time."""
    return render_openmetrics(timed_frames(dataset, name))


def render_openmetrics(frames: Mapping[str, pd.DataFrame]) -> str:
    """Return frames as OpenMetrics text, ordered as Prometheus's backfill wants it.

    Args:
        frames: any of ``device``, ``series`` and ``summary``; others have no values over time.

    Returns:
        Families one after another, the samples of a series in the order of time, and ``# EOF``.
    """
    blocks = []
    if "device" in frames:
        blocks += [*_device_blocks(frames["device"])]
    if "series" in frames:
        blocks += [*_series_blocks(frames["series"])]
    if not any(blocks):
        raise InputError(
            "no result has timestamps",
            hint="OpenMetrics holds the frames device and series of finished runs; imported logs"
            " without their result have a time of day only with fio's log_unix_epoch",
        )
    if "summary" in frames:
        blocks.append(_run_block(frames))
    return "".join(line for block in blocks for line in block) + "# EOF\n"


def _device_blocks(device: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the families that the node exporter also has."""
    samples = once_each(device.dropna(subset=["device"]), by=_DEVICE)
    for counter in ON_DEVICE:
        yield _counter_block([counter], samples, by=_DEVICE)
    on_host = once_each(device, by=_HOST)
    names = dict.fromkeys(counter.family for counter in ON_HOST)
    for family in names:
        counters = [counter for counter in ON_HOST if counter.family == family]
        yield _counter_block(counters, on_host, by=_HOST)
    for column, _, family in MEMORY:
        yield _block(family, _gauge_lines(family.name, on_host, column, labels=_host_labels))


def _counter_block(counters: Sequence[Counter], rows: pd.DataFrame, *, by: list[str]) -> list[str]:
    """Return a family of counters, with a sample before each stretch of looks."""
    lines = []
    for counter in counters:
        amounts = counter.amount(rows)
        known = amounts.notna()
        sampled = rows[known].reset_index(drop=True)
        added = amounts[known].reset_index(drop=True)
        sampled = sampled.assign(sum=running_sum(sampled, added, by=by), added=added)
        for key, samples in sampled.groupby(by, sort=False, dropna=False):
            labels = {
                **_host_labels(dict(zip(by, key, strict=True))),
                **({"device": str(key[-1])} if by == _DEVICE else {}),
                **counter.more,
            }
            name = f"{counter.family.name}_total{_braces(labels)}"
            first = samples["opens"] | (samples.index == samples.index[0])
            before = (samples["sum"] - samples["added"]).round(6).clip(lower=0)
            for opens, begin, end, start, total in zip(
                first, samples["begin_s"], samples["end_s"], before, samples["sum"], strict=True
            ):
                if opens:
                    lines.append(f"{name} {start!r} {begin:.3f}\n")
                lines.append(f"{name} {total!r} {end:.3f}\n")
    return _block(counters[0].family, lines)


def _series_blocks(series: pd.DataFrame) -> Iterator[list[str]]:
    """Yield fio's own view."""
    rows = series.assign(end_s=seconds(series["utc"])).dropna(subset=["end_s"])
    rows = rows.sort_values(
        [*_STREAM, "end_s"],
        ignore_index=True,
        kind="stable",
        key=lambda column: pd.factorize(column)[0] if column.name in _STREAM else column,
    ).drop_duplicates([*_STREAM, "end_s"])
    yield _block(IOPS, _with_end_lines(rows, "iops", IOPS.name, end="0.0"))
    yield _block(BANDWIDTH, _with_end_lines(rows, "bw_bytes_per_s", BANDWIDTH.name, end="0.0"))
    latencies = [
        _with_end_lines(rows, f"lat_{statistic}_s", LATENCY.name, end="NaN", statistic=statistic)
        for statistic in _STATISTICS
    ]
    yield _block(LATENCY, [line for lines in latencies for line in lines])


def _with_end_lines(
    rows: pd.DataFrame, column: str, name: str, *, end: str, **more: str
) -> list[str]:
    """Return the lines of each run, and one right behind its last: it does no I/O any more.

    Prometheus would go on with the last value for five minutes.
    """
    lines = []
    for _, stream in rows.dropna(subset=[column]).groupby(_STREAM, sort=False, dropna=False):
        lines += _gauge_lines(name, stream, column, labels=partial(_series_labels, more=more))
        last = records(stream.tail(1))[0]
        after_s = float(str(last["end_s"])) + _AFTER_S
        lines.append(f"{name}{_braces(_series_labels(last, more=more))} {end} {after_s:.3f}\n")
    return lines


def _gauge_lines(
    name: str,
    rows: pd.DataFrame,
    column: str,
    *,
    labels: Callable[[Mapping[str, object]], dict[str, str]],
) -> list[str]:
    """Return a line for each known value."""
    known = rows.dropna(subset=[column])
    return [
        f"{name}{_braces(labels(row))} {float(str(row[column]))!r} {row['end_s']:.3f}\n"
        for row in records(known)
    ]


def _run_block(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return the facts of each run, repeated from its start to its last sample."""
    ends = pd.concat(
        [frames[name][["run", "utc"]] for name in ("device", "series") if name in frames]
    )
    last = ends.assign(end_s=seconds(ends["utc"])).groupby("run")["end_s"].max()
    runs = frames["summary"].drop_duplicates("run")
    runs = runs.assign(start_s=seconds(runs["started_utc"]), end_s=runs["run"].map(last))
    lines = []
    for row in records(runs.dropna(subset=["start_s", "end_s"])):
        text = f"{RUN.name}_info{_braces(_run_labels(row))} 1"
        moment, end = float(str(row["start_s"])), float(str(row["end_s"]))
        while moment < end:
            lines.append(f"{text} {moment:.3f}\n")
            moment += _INFO_S
        lines.append(f"{text} {end:.3f}\n")
    return _block(RUN, lines)


def _host_labels(row: Mapping[str, object]) -> dict[str, str]:
    return {"job": JOB, "instance": str(row["host"]), "campaign": str(row["campaign"])}


def _series_labels(row: Mapping[str, object], *, more: Mapping[str, str]) -> dict[str, str]:
    labels = {name: str(row[name]) for name in ("run", "group", "role", "volume", "direction")}
    return {**_host_labels(row), "fio_job": str(row["job"]), **labels, **more}


def _run_labels(row: Mapping[str, object]) -> dict[str, str]:
    """Return a run's facts; names of hosts' labels are made fit for Prometheus, and kept apart."""
    labels = {**_host_labels(row), "fio_job": str(row["job"])}
    facts = {name: row[name] for name in _RUN_FACTS}
    facts |= {name: value for name, value in row.items() if name.startswith(LABEL_PREFIX)}
    for name, value in facts.items():
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            labels[fit_label(name, labels)] = text
    return labels


def _braces(labels: Mapping[str, str]) -> str:
    """Return labels as they stand behind a name, escaped as the format asks."""
    parts = []
    for name, value in labels.items():
        escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        parts.append(f'{name}="{escaped}"')
    return "{" + ",".join(parts) + "}"


def _block(family: Family, lines: list[str]) -> list[str]:
    """Return the lines of a family below its description; nothing without samples."""
    if not lines:
        return []
    head = [f"# TYPE {family.name} {family.kind}\n"]
    if family.unit:
        head.append(f"# UNIT {family.name} {family.unit}\n")
    return [*head, f"# HELP {family.name} {family.meaning}\n", *lines]
