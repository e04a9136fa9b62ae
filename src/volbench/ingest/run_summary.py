"""Columns of the summary frame for one run: planned columns, and those reported by fio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from volbench.analyse.frames.workload_spec import SYNCHRONOUS, bypasses_page_cache, engine_name
from volbench.fio.results.merge_jobs import MIN_TOGETHER, bin_edges_ns
from volbench.model.campaign.planned_run import Campaign, Run, Section
from volbench.model.frames.columns import (
    LABEL_PREFIX,
    LAST_BINS_S,
    MIXED,
    PERCENTILES,
    REPLAYED,
    SUBMISSION,
    WATCHED,
    Row,
)
from volbench.model.profile.profile_model import Tool
from volbench.model.results.result import Direction, DirectionResult, JobResult, Latency
from volbench.store.parquet_tables import Block

# Difference of the rate while all jobs ran from that of the whole run, up to which latencies of the
# whole run stand for both. Noticed by: tests/ingest/test_field_results.py
MAX_RATE_DIFFERENCE = 0.05
# No I/O takes longer than the run, but fio reports whole seconds and ends late.
# Noticed by: tests/ingest/test_field_results.py
_MAX_OVER_RUNTIME, _MAX_OVER_RUNTIME_S = 1.1, 2.0
# Completion is a part of total latency; a version of fio with an engine of its own printed 33,000
# times as much. Noticed by: tests/ingest/test_field_results.py
_MAX_OVER_LAT = 1.5
# Windows of fio are of the jobs one by one in old normal output, and of single I/Os where its logs
# are not averaged. Noticed by: tests/ingest/test_field_results.py
_MAX_OUTSIDE_WINDOWS = 2.0
# A percentile is the middle of its bin, at most 0.8 % above a maximum in it (stat.h of fio).
# Windows count whole I/Os, which is as little. Noticed by: tests/ingest/test_field_results.py
_TOP = 1.01
# Share of completion in the mean latency from which its percentiles stand for those of the whole.
# Noticed by: tests/ingest/test_field_results.py
_MIN_COMPLETION = 0.5
_LATENCIES = ("lat", "clat", "slat")
_NO_RATES: Row = dict.fromkeys(("iops", "iops_overall", "bw_bytes_per_s", "bw_overall_bytes_per_s"))
_POSITION = {Direction.READ: 0, Direction.WRITE: 1, Direction.TRIM: 2}
_ALONE = frozenset(map(str, _POSITION))


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run: Run  # the run
    status: str  # as in the column of that name
    started_utc: str | None  # start of its process; None if not recorded


def planned_columns(campaign: Campaign, outcome: Outcome, section: Section) -> Row:
    """Return the columns that are known without any output."""
    run = outcome.run
    options, is_reported = _effective_options(run, section), run.reports_options(section)
    default, engine = "1" if is_reported else "", options.get("ioengine", "psync" * is_reported)
    is_direct = bypasses_page_cache(engine_name(engine), options)
    is_known = is_reported or "direct" in options
    # A queue deeper than 1 has no effect where each I/O is waited for: see finding queue-depth
    is_alone = engine in SYNCHRONOUS or (engine == "libaio" and is_known and not is_direct)
    depth = _integer(options.get("iodepth", default))
    return {
        **campaign.identity_of(run, section.name),
        "tool": run.tool.value,
        "rw": _pattern(run, section, options),
        "rwmixread": _read_percent(options),
        "direct": is_direct if is_known else None,
        "iodepth": min(depth, 1) if depth and is_alone else depth,
        "numjobs": _integer(options.get("numjobs", default)),
        "ioengine": options.get("ioengine"),
        "size_bytes": _integer(options.get("size", "")),
        "volume_bytes": run.volume.size_bytes,
        "status": outcome.status,
        "started_utc": outcome.started_utc,
        "limit_iops": run.limits.iops,
        "limit_bw_bytes_per_s": run.limits.bandwidth_bytes_per_s,
        "note": run.note or None,
        "start_offset_s": run.start_offset_s if run.step else None,
        "client": run.client or None,
        "arm": run.arm or None,
        "block": run.block or None,
        "import_folder": run.imported.folder if run.imported else None,
        **{f"{LABEL_PREFIX}{name}": value for name, value in campaign.labels_of(run).items()},
    }


def lost_columns(campaign: Campaign, outcome: Outcome) -> Row:
    """Return the columns of a run without output, with the block size of all its directions."""
    run, section = outcome.run, outcome.run.sections[0]
    options = _effective_options(run, section)
    pattern = options.get("rw", "").partition(":")[0].removeprefix("rand")
    direction = Direction(pattern) if pattern in _ALONE else Direction.MIXED
    return {**planned_columns(campaign, outcome, section), **_block_columns(options, direction)}


def _pattern(run: Run, section: Section, options: Mapping[str, str]) -> str | None:
    if run.tool is Tool.WATCH:
        return WATCHED
    if "read_iolog" in options:
        return REPLAYED
    return MIXED if run.is_merged(section) else options.get("rw")


def measured_columns(section: Section, run: Run, job: JobResult, direction: DirectionResult) -> Row:
    """Return the columns that fio reported for one direction of a section."""
    options = _effective_options(run, section)
    return {
        "direction": direction.direction.value,
        "sync_calls": _sync_calls(options) if direction.direction is Direction.SYNC else None,
        **({} if run.extent is None else {"numjobs": job.members}),
        **_blocks_done(options, direction),
        "runtime_s": direction.runtime_s,
        "io_bytes": direction.io_bytes,
        "total_ios": direction.total_ios,
        "iops": direction.iops,
        "iops_overall": direction.iops,
        **_windows(direction, jobs=max(job.members, _integer(options.get("numjobs", "")) or 1)),
        "bw_bytes_per_s": direction.bw_bytes_per_s,
        "bw_overall_bytes_per_s": direction.io_bytes / direction.runtime_s
        if direction.bw_bytes_per_s is not None and direction.runtime_s > 0
        else direction.bw_bytes_per_s,
        **_while_parallel(direction),
        "cpu_usr": job.cpu_usr,
        "cpu_sys": job.cpu_sys,
        "error": job.error,
        **_latency_columns(direction),
        **(_NO_RATES if _only_verifies(options, direction.direction) else {}),
    }


def _only_verifies(options: Mapping[str, str], direction: Direction) -> bool:
    """Return whether I/Os of a direction only read back what was written.

    Their time is not that of the writes, and fio reads many blocks at once, so they have no rate.
    """
    pattern = options.get("rw", "").partition(":")[0]
    is_verified = options.get("verify", "0") not in {"0", "", "none"}
    return direction is Direction.READ and is_verified and pattern in {"write", "randwrite"}


def _windows(direction: DirectionResult, *, jobs: int) -> Row:
    """Return fio's statistics of its windows, unless they are windows of a part of the rate."""
    low, high, rate = direction.iops_min, direction.iops_max, direction.iops
    if high is None or rate is None or rate > _MAX_OUTSIDE_WINDOWS * high:
        return {}
    # fio adds the variances of jobs; those of rates that move together are not independent.
    stddev = None if jobs > 1 else direction.iops_stddev
    return {"iops_min": low, "iops_max": high, "iops_stddev": stddev}


def _while_parallel(direction: DirectionResult) -> Row:
    """Return the rates of the time in which all jobs ran, where they ended at different times."""
    parallel_s = direction.parallel_s
    if parallel_s is None or parallel_s >= MIN_TOGETHER * direction.runtime_s:
        return {"parallel_s": direction.runtime_s}
    return {
        "parallel_s": parallel_s,
        "iops": direction.iops_parallel,
        "bw_bytes_per_s": direction.bw_parallel_bytes_per_s,
    }


def keep_latencies_of_rate(row: Row, mean_s: object) -> None:
    """Remove latencies of the whole run beside a rate of another time.

    Args:
        row: row of the summary, changed in place.
        mean_s: mean latency of the time of its rate, if the logs have it.
    """
    rate, overall = row.get("iops"), row.get("iops_overall")
    if not isinstance(rate, float) or not isinstance(overall, float):
        return
    if abs(rate - overall) <= MAX_RATE_DIFFERENCE * overall:
        return
    kind = "lat" if row.get("lat_mean_s") is not None else "clat"
    for name in [name for name in row if name.startswith(tuple(f"{lat}_" for lat in _LATENCIES))]:
        row[name] = None
    row[f"{kind}_mean_s"] = mean_s


def keep_range_of_rate(row: Row) -> None:
    """Remove minimum, maximum and deviation of windows that do not contain the rate of a run.

    Windows of half a second miss the rest of a short run. Rounding to whole I/Os does not count.
    """
    rate, low, high = (row.get(name) for name in ("iops", "iops_min", "iops_max"))
    if not (isinstance(rate, Real) and isinstance(low, Real) and isinstance(high, Real)):
        return
    if not float(low) / _TOP <= float(rate) <= _TOP * float(high):
        row |= {"iops_min": None, "iops_max": None, "iops_stddev": None}


def without_impossible(
    direction: DirectionResult, job: JobResult
) -> tuple[DirectionResult, list[str]]:
    """Return a result without latencies that cannot be true, and a remark on each."""
    longest_s = max(direction.runtime_s, job.elapsed_s or 0.0)
    kept: dict[str, Latency] = {}
    remarks: list[str] = []
    for name, latency in latencies(direction):
        if latency.max_s > longest_latency_s(longest_s):
            remark = f"{name} of {latency.max_s:,.0f} s in a run of {longest_s:,.0f} s"
        elif "lat" in kept and latency.mean_s > _MAX_OVER_LAT * kept["lat"].mean_s:
            whole_s = kept["lat"].mean_s
            remark = f"{name} mean of {latency.mean_s:.3g} s above the lat mean of {whole_s:.3g} s"
        else:
            kept[name], remark = _without_impossible_percentiles(name, latency)
        remarks += [remark] if remark else []
    if remark := _remark_on_submission(kept):
        kept["clat"] = replace(kept["clat"], percentiles={}, bins={})
        remarks.append(remark)
    if direction.iops is None and direction.bw_bytes_per_s is not None and direction.total_ios:
        remarks.append("IOPS that are not a number")  # fio prints inf or nan
    kinds = kept.get("lat"), kept.get("clat"), kept.get("slat")
    return replace(direction, lat=kinds[0], clat=kinds[1], slat=kinds[2]), remarks


def _remark_on_submission(kept: Mapping[str, Latency]) -> str:
    """Return why percentiles of completion cannot replace those of the latency; empty if they can.

    fio counts the work of an engine during submission, such as buffered I/O of libaio, elsewhere.
    """
    lat, clat = kept.get("lat"), kept.get("clat")
    if lat is None or clat is None or lat.percentiles or not clat.percentiles:
        return ""
    share = clat.mean_s / lat.mean_s if lat.mean_s else 1.0
    if share >= _MIN_COMPLETION:
        return ""
    return f"clat percentiles, {SUBMISSION} {100 * share:.0f} % of the mean latency"


def longest_latency_s(runtime_s: float) -> float:
    """Return the longest latency that an I/O of a run can have."""
    return _MAX_OVER_RUNTIME * runtime_s + _MAX_OVER_RUNTIME_S


def _without_impossible_percentiles(name: str, latency: Latency) -> tuple[Latency, str]:
    known = latency.percentiles
    above = [percentile for percentile in known if known[percentile] > _TOP * latency.max_s]
    if above:
        top, max_s = above[0], latency.max_s
        remark = f"{name} p{top:g} of {known[top]:.3g} s above the maximum of {max_s:.3g} s"
        return replace(latency, percentiles={}, bins={}), remark
    last = [percentile for percentile in known if round(known[percentile], 9) in LAST_BINS_S]
    if not last or latency.max_s <= known[last[0]] * _TOP:
        at_most = {number: min(value, latency.max_s) for number, value in known.items()}
        return replace(latency, percentiles=at_most), ""
    more = " and above" if last[1:] else ""
    remark = f"{name} p{last[0]:g}{more} > {known[last[0]]:.1f} s (the last bin of fio)"
    rest = {percentile: known[percentile] for percentile in known if percentile not in last}
    return replace(latency, percentiles=rest), remark


def latencies(direction: DirectionResult) -> list[tuple[str, Latency]]:
    """Return the kinds of latency that were reported for a direction, with their statistics."""
    latencies_by_name = ((name, getattr(direction, name)) for name in _LATENCIES)
    return [(name, latency) for name, latency in latencies_by_name if latency is not None]


def percentile_rows(identity: Row, name: str, latency: Latency) -> list[Row]:
    """Return rows of the percentiles frame."""
    return [
        {**identity, "latency": name, "percentile": percentile, "value_s": value_s}
        for percentile, value_s in latency.percentiles.items()
    ]


def share_rows(identity: Row, job: JobResult) -> list[Row]:
    """Return rows of the shares frame, without classes that no I/O is in."""
    nanoseconds = {start_ns / 1e9: percent for start_ns, percent in job.clat_shares.items()}
    return [
        {**identity, "quantity": quantity, "low": low, "high": high, "percent": percent}
        for quantity, shares in (("clat", nanoseconds), ("iodepth", job.depth_shares))
        for (low, percent), high in zip(shares.items(), [*list(shares)[1:], None], strict=False)
        if percent > 0
    ]


def histogram_block(identity: Row, name: str, latency: Latency) -> Block:
    """Return rows of the histogram frame, one for each bin; the latency has bins."""
    edges_ns = np.array([bin_edges_ns(mid_ns) for mid_ns in latency.bins], dtype=np.float64)
    columns = {
        "bin_s": np.array([*latency.bins], dtype=np.float64) / 1e9,
        "bin_low_s": edges_ns[:, 0] / 1e9,
        "bin_high_s": edges_ns[:, 1] / 1e9,
        "count": np.array([*latency.bins.values()], dtype=np.int64),
    }
    return Block({**identity, "latency": name}, columns)


def _effective_options(run: Run, section: Section) -> dict[str, str]:
    if not run.reports_options(section):
        return run.effective(section)
    return {"rw": "read", "bs": "4096", **run.effective(section)}


def _read_percent(options: Mapping[str, str]) -> int | None:
    if options.get("rw", "").partition(":")[0] not in {"rw", "readwrite", "randrw"}:
        return None
    if "rwmixwrite" in options and "rwmixread" not in options:
        written = _integer(options["rwmixwrite"])
        return None if written is None else 100 - written
    return _integer(options.get("rwmixread", "50"))


def _integer(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _sync_calls(options: Mapping[str, str]) -> str | None:
    """Return the calls that fio adds up under ``sync``; None if their options are unknown."""
    names = ("fsync", "fdatasync", "sync_file_range")
    return ", ".join(name for name in names if options.get(name, "0") != "0") or None


def _blocks_done(options: Mapping[str, str], done: DirectionResult) -> Row:
    """Return the blocks of a direction; none of I/O without a name that has other sizes."""
    columns = _block_columns(options, done.direction)
    block, ios = columns.get("block_bytes"), done.total_ios or 0
    is_unlike = isinstance(block, int) and done.io_bytes != block * ios
    return {} if is_unlike and done.direction is Direction.OTHER else columns


def _block_columns(options: Mapping[str, str], direction: Direction) -> Row:
    """Return the smallest and largest block of a direction, and its block size if they agree.

    Nothing if they are not known.
    """
    if direction is Direction.SYNC or "read_iolog" in options:
        return {}
    positions = _positions(options, direction)
    texts = [size for position in positions for size in _blocks(options, position)]
    sizes = [size for text in texts if (size := _integer(text)) is not None]
    if len(sizes) < len(texts):
        return {}
    low, high = min(sizes), max(sizes)
    same = low if low == high else None
    return {"block_bytes": same, "block_min_bytes": low, "block_max_bytes": high}


def _positions(options: Mapping[str, str], direction: Direction) -> set[int]:
    """Return the values of a triple whose sizes I/Os of a direction may have.

    Verification reads what was written, in the blocks of the writes.
    """
    if direction in {Direction.MIXED, Direction.OTHER}:
        return {*_POSITION.values()}
    position = _POSITION.get(direction, 0)
    pattern = options.get("rw", "").partition(":")[0]
    if position == 0 and "verify" in options and pattern not in {"read", "randread"}:
        return {1} if pattern in {"write", "randwrite"} else {0, 1}
    return {position}


def _blocks(options: Mapping[str, str], position: int) -> list[str]:
    """Return sizes of blocks in bytes, those at the bounds included; empty if not known.

    The last value of a triple is that of the directions after it too. An empty one is a default,
    which may be of a global section.
    """
    name = next((name for name in ("bssplit", "bsrange") if name in options), "bs")
    parts = options.get(name, "").split(",")
    part = parts[min(position, len(parts) - 1)]
    if name == "bssplit":
        return [entry.partition("/")[0] for entry in part.split(":")]
    return part.split("-")


def _latency_columns(direction: DirectionResult) -> Row:
    row: Row = {}
    for name, latency in latencies(direction):
        row |= {
            f"{name}_mean_s": latency.mean_s,
            f"{name}_stddev_s": latency.stddev_s,
            f"{name}_min_s": latency.min_s,
            f"{name}_max_s": latency.max_s,
        }
        row |= {
            f"{name}_{label}_s": latency.percentiles.get(percentile)
            for label, percentile in PERCENTILES.items()
        }
    return row
