"""Summary of a watch in sentences: which disk was saturated from when to when, and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from volbench.units import counted_noun, format_count, format_duration, format_percent, format_rate

if TYPE_CHECKING:
    import pandas as pd

    from volbench.api.many_campaigns import Dataset

# Share of an interval with requests in flight from which a disk counts as saturated, if its queue
# holds more than one: one request at a time keeps an idle SSD busy, too. No verdict depends on it.
_BUSY_PERCENT, _QUEUE = 90.0, 1.0
_CPU_PERCENT = 90.0
_SHOWN = 5  # disks, and hosts
_SPANS = 3  # of a disk, the longest
_GAP_S = 2.0  # Longest pause within a span: an interval just below a threshold ends none
_PROCESSES = 3
_WAYS = {"read": "bytes read from", "write": "bytes written to"}
_MIN_SHARE = 0.25  # Share of the bytes from which the lesser direction is named; no verdict
_MIN_NAMED = 0.0005  # Share from which what is left is named; no verdict


class _Span(NamedTuple):
    """Consecutive intervals in which something was saturated."""

    begin_s: float  # time axis of the run
    end_s: float
    begin_utc: str
    end_utc: str


def summary_lines(watched: Dataset) -> Iterator[str]:
    """Yield a sentence for each of the busiest disks, and for the CPUs of each host of a watch."""
    names = [name for name, data in watched.names.items() if data.campaign.is_watched]
    if not names:
        return
    device, processes = watched.frame("device"), watched.frame("processes")
    own = device[(device["level"] == "volume") & device["campaign"].isin(names)]
    for name, rows in own.groupby("campaign", sort=False):
        label = f"{name}: " if len(watched.names) > 1 else ""
        for line in _lines_of(rows, processes[processes["campaign"] == name]):
            yield label + line


def _lines_of(own: pd.DataFrame, processes: pd.DataFrame) -> Iterator[str]:
    several = len(set(own["host"])) > 1
    busy = own.groupby("run")["active_percent"].mean().sort_values(ascending=False)
    disks = [own[own["run"] == run] for run in busy.index if _moved(own[own["run"] == run]) > 0]
    for rows in disks[:_SHOWN]:
        host = str(rows["host"].iloc[0])
        of_host = own[own["host"] == host], processes[processes["host"] == host]
        yield f"{host}: " * several + _disk_words(rows, *of_host)
    if idle := len(busy) - len(disks):
        yield f"{counted_noun(idle, 'disk')} had no I/O."
    if left := len(disks[_SHOWN:]):
        yield f"{counted_noun(left, 'more disk')}, less busy: volbench show --use"
    for name, rows in list(own.groupby("host"))[:_SHOWN]:
        yield f"{name}: " * several + _cpu_words(rows.drop_duplicates("utc"), any(_saturated(rows)))


def _moved(rows: pd.DataFrame) -> float:
    return float(((rows["read_iops"] + rows["write_iops"]) * rows["interval_s"]).sum())


def _saturated(rows: pd.DataFrame) -> pd.Series[bool]:
    return (rows["active_percent"] >= _BUSY_PERCENT) & (rows["queue_depth"] > _QUEUE)


def _disk_words(rows: pd.DataFrame, of_host: pd.DataFrame, processes: pd.DataFrame) -> str:
    weights = rows["interval_s"] / rows["interval_s"].sum()
    ways = [
        f"{format_count(float((rows[f'{way}_iops'] * weights).sum()))} {way}s/s "
        f"({format_rate(float((rows[f'{way}_bw_bytes_per_s'] * weights).sum()))})"
        for way in ("read", "write")
        if (rows[f"{way}_iops"] > 0).any()
    ]
    total = rows["read_iops"] + rows["write_iops"]
    active = float((rows["active_percent"] * weights).sum()) / 100
    peak_utc = str(rows["utc"].iloc[int(total.to_numpy().argmax())])
    words = (
        f"{rows['device'].iloc[0]}: {' and '.join(ways)} on average; "
        f"peak {format_count(float(total.max()))} IOPS at {_clock(peak_utc)}; "
        f"busy {format_percent(active)} of the time; "
    )
    mask = _saturated(rows)
    if not (spans := _spans(rows, mask)):
        return f"{words}never saturated{_causes(of_host, rows, processes, '')}."
    longest = sorted(spans, key=lambda span: span.begin_s - span.end_s)[:_SPANS]
    times = ", ".join(f"{_clock(s.begin_utc)} to {_clock(s.end_utc)}" for s in sorted(longest))
    more = f" (the longest of {len(spans)} times)" if len(spans) > _SPANS else ""
    lasted = format_duration(round(float(rows.loc[mask, "interval_s"].sum())))
    causes = _causes(of_host, rows[mask], processes, "meanwhile, ")
    return f"{words}saturated for {lasted}: {times}{more}{causes}."


def _causes(rows: pd.DataFrame, busy: pd.DataFrame, processes: pd.DataFrame, when: str) -> str:
    """Return who moved the bytes of a disk in the directions that kept it busy, where they were."""
    sizes = {way: float(busy[f"{way}_bw_bytes_per_s"].sum()) for way in _WAYS}
    ways = [way for way, size in sizes.items() if size and size >= _MIN_SHARE * max(sizes.values())]
    looks, seen = processes["t_s"].isin([]), rows["t_s"].isin([])
    for end_s, interval_s in {*zip(processes["t_s"], processes["interval_s"], strict=True)}:
        if busy["t_s"].between(end_s - interval_s, end_s, inclusive="right").any():
            looks |= processes["t_s"] == end_s
            seen |= rows["t_s"].between(end_s - interval_s, end_s, inclusive="right")
    parts = [_share_words(rows[seen], processes[looks], way) for way in ways]
    said = "; ".join(filter(None, parts))
    return f"; {when}{said}" if said else ""


def _share_words(rows: pd.DataFrame, processes: pd.DataFrame, way: str) -> str:
    """Return the shares of processes, which have no disk, in the bytes of all disks: 100 %."""
    moved = processes.groupby("process")[f"{way}_bytes"].sum()
    disk = float((rows[f"{way}_bw_bytes_per_s"] * rows["interval_s"]).sum())
    if not disk:
        return ""
    # A loop device on the disk: its bytes are those of a process and again of the loop's own
    disk = max(disk, float(moved.sum()))
    most = moved[moved > 0].nlargest(_PROCESSES)
    rest = {"others": moved.sum() - most.sum(), "unattributed": disk - moved.sum()}
    shares = [*most.items(), *(pair for pair in rest.items() if pair[1] >= _MIN_NAMED * disk)]
    names = ", ".join(f"{name} {format_percent(size / disk)}" for name, size in shares)
    return f"{_WAYS[way]} all disks: {names}"


def _cpu_words(rows: pd.DataFrame, is_disk_full: bool) -> str:  # noqa: FBT001 - of one caller
    busy, waiting = rows["cpu_busy_percent"], rows["iowait_percent"]
    means = [format_percent(float(each.mean()) / 100) for each in (busy, waiting)]
    words = f"CPU: {means[0]} busy, {means[1]} iowait"
    if not (spans := _spans(rows, busy >= _CPU_PERCENT)):
        return f"{words}; never above {_CPU_PERCENT:g} %."
    longest = max(spans, key=lambda span: span.end_s - span.begin_s)
    lasted = format_duration(round(float(rows.loc[busy >= _CPU_PERCENT, "interval_s"].sum())))
    return (
        f"{words}; above {_CPU_PERCENT:g} % for {lasted}, longest {_clock(longest.begin_utc)} to "
        f"{_clock(longest.end_utc)}"
        f"{'' if is_disk_full else ': rates may be those of the CPUs, not of the disks'}."
    )


def _spans(rows: pd.DataFrame, mask: pd.Series[bool]) -> list[_Span]:
    """Return the spans of intervals that a mask selects; a short pause ends none."""
    spans: list[_Span] = []
    begin: _Span | None = None
    before_utc = ""
    for t_s, utc, interval_s, is_in in zip(
        rows["t_s"], rows["utc"], rows["interval_s"], mask, strict=True
    ):
        if is_in:
            if begin is None and spans and t_s - interval_s - spans[-1].end_s <= _GAP_S:
                begin = spans.pop()
            begin = begin or _Span(t_s - interval_s, t_s, before_utc or utc, utc)
            begin = begin._replace(end_s=t_s, end_utc=utc)
        elif begin is not None:
            spans.append(begin)
            begin = None
        before_utc = utc
    return [*spans, begin] if begin is not None else spans


def _clock(utc: str) -> str:
    return utc[11:19]
