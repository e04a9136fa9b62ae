"""Volumes of a collection, ranked for each workload, with what is typical of them.

A collection is not a volume: the highest rate of all its results says nothing about most of them.
For each pattern and block size the volumes are ranked at the setting that most of them have in
common (queue depth, numjobs, page cache); results at other settings are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import median, median_high
from typing import TYPE_CHECKING, Any

from volbench.model.campaign.planned_run import RunState, VolumeKind
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import (
    MISSING,
    Row,
    block_size,
    latency,
    number,
    short_target,
    text,
    whole,
)
from volbench.present.tables.findings_table import invalid_runs
from volbench.present.tables.table import IDENTITY, Column, Table
from volbench.units import counted_noun, format_count, format_latency, format_rate

if TYPE_CHECKING:
    import pandas as pd

# Two volumes are compared with each other, more are ranked. Noticed by: test_volumes_table.py
MIN_VOLUMES = 3
_NAMED_CLASSES = 2  # Workloads of the sentence; the table has all
_PLACE = ("campaign", "host", "volume")
_UNKNOWN = VolumeKind.UNKNOWN.value  # Name of a volume, and of a host, that an import does not tell


@dataclass(frozen=True)
class RankedVolume:
    """A volume under one workload."""

    workload: str  # pattern and block size
    rank: int  # 1 is the highest rate
    volume: str  # its name, as far as it differs from others
    iops: float  # median of its repeats, directions added up
    bw_bytes_per_s: float  # likewise
    p99_s: float  # of the median repeat, the slower direction; NaN if not reported
    share: float  # of the rate of rank 1
    runs: tuple[str, ...]


@dataclass(frozen=True)
class WorkloadClass:
    """A pattern and block size at one setting, with the volumes that were measured there."""

    workload: str  # such as ``randread 4k``
    setting: str  # such as ``queue depth 32``
    volumes: Sequence[RankedVolume]  # the fastest first
    elsewhere: int  # volumes measured at other settings only

    @property
    def typical_iops(self) -> float:
        """Median of the volumes."""
        return median(volume.iops for volume in self.volumes)


def is_collection(summary: pd.DataFrame) -> bool:
    """Return whether a summary frame is of so many volumes that they are ranked."""
    places = summary.drop_duplicates([name for name in _PLACE if name in summary])
    return len(places) >= MIN_VOLUMES


def workload_classes(rows: Sequence[Row], invalid: Collection[str] = ()) -> list[WorkloadClass]:
    """Return the workloads of a collection, those of most volumes first; none of few volumes.

    Args:
        rows: of the summary.
        invalid: runs whose numbers do not measure what they claim to; left out.
    """
    valid = [row for row in rows if _is_ranked(row) and text(row, "run") not in invalid]
    if len({_place(row) for row in valid}) < MIN_VOLUMES:
        return []
    names = _distinguishing(valid)
    by_workload: dict[str, list[Row]] = {}
    for row in valid:
        by_workload.setdefault(f"{text(row, 'rw')} {block_size(row)}", []).append(row)
    classes = [_workload_class(workload, rows, names) for workload, rows in by_workload.items()]
    return sorted(classes, key=lambda group: -len(group.volumes))


def _is_measured(row: Row) -> bool:
    return (
        row.get("phase") in (None, Phase.MEASURED.value)
        and row.get("status") == RunState.FINISHED.value
        and row.get("direction") != "sync"
        and number(row, "iops") > 0
    )


def _is_ranked(row: Row) -> bool:
    """Return whether a row is a result of a known workload on a volume with a name or labels."""
    return _is_measured(row) and bool(text(row, "rw")) and {*_place(row)[1:]} != {_UNKNOWN}


def _place(row: Row) -> tuple[str, ...]:
    """Return what identifies a volume: its labels, if it has no name."""
    labels = [text(row, name) for name in row if name.startswith(LABEL_PREFIX)]
    is_known = text(row, "volume") != _UNKNOWN
    return *_key(row, _PLACE), *([] if is_known else filter(None, labels))


def _key(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(text(row, name) for name in names)


def _distinguishing(rows: Sequence[Row]) -> list[str]:
    """Return as few columns as tell the volumes apart; none if nothing does."""
    labels = dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    places = {_place(row): row for row in rows}.values()
    names: list[str] = []
    told_apart = 1
    for name in (*_PLACE[:2], *labels, _PLACE[2]):
        count = len({_key(row, [*names, name]) for row in places})
        if count > told_apart:
            names.append(name)
            told_apart = count
    return names


def _setting(row: Row) -> str:
    depth, jobs = number(row, "iodepth"), number(row, "numjobs")
    parts = [] if math.isnan(depth) else [f"queue depth {whole(row, 'iodepth')}"]
    parts += [f"{whole(row, 'numjobs')} jobs"] if jobs > 1 else []
    parts += ["page cache"] if row.get("direct") is False else []
    return ", ".join(parts) or MISSING


def _workload_class(workload: str, rows: Sequence[Row], names: Sequence[str]) -> WorkloadClass:
    """Rank the volumes of a workload at the setting that most of them have in common."""
    of_setting: dict[str, dict[tuple[str, ...], list[Row]]] = {}
    for row in rows:
        volumes = of_setting.setdefault(_setting(row), {})
        volumes.setdefault(_place(row), []).append(row)
    setting = max(of_setting, key=lambda each: len(of_setting[each]))
    rated = [_rated(runs) for runs in of_setting[setting].values()]
    rated.sort(key=lambda each: -each[0])
    ranked = [
        RankedVolume(
            workload,
            rank,
            _volume_name(first, names),
            iops,
            bandwidth,
            p99,
            iops / rated[0][0],
            runs,
        )
        for rank, (iops, bandwidth, p99, first, runs) in enumerate(rated, start=1)
    ]
    everywhere = {_place(row) for row in rows}
    return WorkloadClass(workload, setting, ranked, len(everywhere) - len(ranked))


def _volume_name(row: Row, names: Sequence[str]) -> str:
    """Return what tells a volume from others; only long paths are cut, not hosts and labels."""
    parts = dict(zip(names, _key(row, names), strict=True))
    if "volume" in parts:
        parts["volume"] = short_target(parts["volume"])
    known = [value for value in parts.values() if value not in {"", _UNKNOWN}]
    return " ".join(known) or MISSING


def _rated(rows: Sequence[Row]) -> tuple[float, float, float, Row, tuple[str, ...]]:
    """Return IOPS, bandwidth and p99 of a volume, a row of it, and its runs."""
    by_run: dict[str, list[Row]] = {}
    for row in rows:
        by_run.setdefault(text(row, "run"), []).append(row)
    tails = [max(latency(row, "p99").seconds for row in group) for group in by_run.values()]
    tails = [tail for tail in tails if not math.isnan(tail)]
    return (
        median(sum(number(row, "iops") for row in group) for group in by_run.values()),
        median(sum(number(row, "bw_bytes_per_s") for row in group) for group in by_run.values()),
        median_high(tails) if len(tails) == len(by_run) else math.nan,
        rows[0],
        tuple(by_run),
    )


def collection_answer(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """Return the sentences of `collection_words`; empty for results of few volumes."""
    invalid = invalid_runs(findings)
    classes = workload_classes(rows, invalid)
    return collection_words(rows, classes, invalid) if classes else []


def collection_words(
    rows: Sequence[Row], classes: Sequence[WorkloadClass], invalid: Collection[str] = ()
) -> list[str]:
    """Return sentences: what was measured, what is typical, and what cannot be compared."""
    measured = [row for row in rows if _is_ranked(row)]
    volumes = len({_place(row) for row in measured})
    workloads = {(text(row, "rw"), block_size(row)) for row in measured}
    runs = {text(row, "run") for row in measured}
    counts = ((len(runs), "result"), (len(workloads), "workload"), (volumes, "volume"))
    sentences = ["{} of {} on {}.".format(*(counted_noun(*count) for count in counts))]
    ranked = [group for group in classes if len(group.volumes) > 1]
    for group in ranked[:_NAMED_CLASSES]:
        first, last = group.volumes[0], group.volumes[-1]
        middle = f" median {format_count(group.typical_iops)} IOPS,"
        sentences.append(
            f"{group.workload} at {group.setting}: {first.volume} is the fastest of"
            f" {len(group.volumes)} ({format_count(first.iops)} IOPS),"
            f"{middle if len(group.volumes) >= MIN_VOLUMES else ''} {last.volume} the slowest"
            f" ({format_count(last.iops)} IOPS)."
        )
    unknown = {text(row, "run") for row in rows if _is_measured(row)} - runs
    return [*sentences, *_not_comparable(classes, runs & {*invalid}, unknown)]


def _not_comparable(
    classes: Sequence[WorkloadClass], invalid: Collection[str], unknown: Collection[str]
) -> list[str]:
    single = sum(len(group.volumes) == 1 for group in classes)
    elsewhere = sum(group.elsewhere > 0 and len(group.volumes) > 1 for group in classes)
    sentences = []
    if single:
        workloads = counted_noun(single, "workload")
        sentences.append(f"Not ranked: {workloads} that no two volumes ran at the same settings.")
    if elsewhere:
        sentences.append(
            f"The ranking of {counted_noun(elsewhere, 'workload')} leaves out volumes measured only"
            " at other settings."
        )
    if invalid:
        sentences.append(f"Left out: {counted_noun(len(invalid), 'invalid result')}.")
    if unknown:
        results = counted_noun(len(unknown), "result")
        sentences.append(f"Left out: {results} of an unknown volume or pattern.")
    return sentences


def workloads_table(classes: Sequence[WorkloadClass]) -> Table[WorkloadClass]:
    """Return a row for each workload that several volumes ran: fastest, typical and slowest."""

    def rate(
        name: str, label: str, priority: int, of: Callable[[WorkloadClass], float]
    ) -> Column[WorkloadClass]:
        return _number_column(name, label, priority, of, format_count)

    columns: list[Column[WorkloadClass]] = [
        Column("workload", lambda group: group.workload, priority=IDENTITY),
        Column("at", lambda group: group.setting, priority=2),
        Column(
            "volumes",
            lambda group: str(len(group.volumes)),
            is_right=True,
        ),
        Column("fastest", lambda group: group.volumes[0].volume, is_folded=True),
        rate("fastest_iops", "Fastest IOPS", 1, lambda group: group.volumes[0].iops),
        rate("median_iops", "Median IOPS", 1, lambda group: group.typical_iops),
        rate("slowest_iops", "Slowest IOPS", 1, lambda group: group.volumes[-1].iops),
        Column(
            "slowest",
            lambda group: group.volumes[-1].volume,
            priority=3,
            is_folded=True,
        ),
    ]
    return Table(
        "workloads",
        columns,
        [group for group in classes if len(group.volumes) > 1],
        title="Workloads that several volumes ran, at the setting that most have in common.",
    )


def ranking_table(classes: Sequence[WorkloadClass], *, most: int = 0) -> Table[RankedVolume]:
    """Return the volumes of each workload, the fastest first.

    Args:
        most: volumes of a workload that are listed; 0 for all.
    """
    columns: list[Column[RankedVolume]] = [
        Column("workload", lambda row: row.workload, priority=IDENTITY),
        Column(
            "rank",
            lambda row: str(row.rank),
            is_right=True,
        ),
        Column("volume", lambda row: row.volume, priority=IDENTITY),
        _number_column("iops", "IOPS", 1, lambda row: row.iops, format_count),
        _number_column(
            "bw_bytes_per_s", "Bandwidth", 3, lambda row: row.bw_bytes_per_s, format_rate
        ),
        _number_column("lat_p99_s", "p99 latency", 2, lambda row: row.p99_s, format_latency),
        _number_column("of_fastest", "Of the fastest", 2, lambda row: row.share, "{:.2g} x".format),
    ]
    ranked = [group for group in classes if len(group.volumes) > 1]
    left_out = sum(max(0, len(group.volumes) - most) for group in ranked) if most else 0
    return Table(
        "ranking",
        columns,
        [volume for group in ranked for volume in group.volumes[: most or None]],
        title="Volumes by workload, the fastest first; medians of repeats.",
        notes=[f"{left_out} more: volbench report ranks all"] if left_out else [],
    )


def ranking_tables(classes: Sequence[WorkloadClass], *, most: int = 0) -> list[Table[Any]]:
    """Return the workloads of a collection and its ranked volumes; none without common ones."""
    if all(len(group.volumes) == 1 for group in classes):
        return []
    return [workloads_table(classes), ranking_table(classes, most=most)]


def _number_column(
    name: str,
    label: str,
    priority: int,
    of: Callable[[Any], float],
    formatted: Callable[[float], str],
) -> Column[Any]:
    """Return a column of numbers."""
    return Column(
        name,
        lambda ranked: MISSING if math.isnan(of(ranked)) else formatted(of(ranked)),
        header=label,
        priority=priority,
        is_right=True,
    )
