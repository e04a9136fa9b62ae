"""Parser of fio's JSON output into a RunOutput in base SI units.

Numbers only change their unit: latencies become seconds, KiB become bytes. The unit follows from
the keys: ``clat_ns`` is fio 3, ``io_bytes`` is in bytes if there is ``io_kbytes`` (since 2.21), and
``bw_bytes`` accompanies a ``bw`` in KiB/s (since 3.2).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from volbench.errors import OutputError
from volbench.fio.results.json_documents import (
    Disputed,
    Fields,
    are_counts,
    read_clat_shares,
    read_depth_shares,
    read_documents,
)
from volbench.fio.results.merge_jobs import merge_direction
from volbench.model.results.result import (
    SUM_OF_CLIENTS,
    Direction,
    DirectionResult,
    JobResult,
    Latency,
    RunOutput,
    without_sum,
)

_TRANSFERS = (Direction.READ, Direction.WRITE, Direction.TRIM, Direction.MIXED)
# Shorter runtimes are too coarse to count jobs by. Noticed by:
# tests/fio/results/test_json_output.py::test_jobs_of_a_group_are_counted_by_their_runtimes
_MIN_COUNTED_S = 0.1
# Sum of runtimes, as a multiple of the longest, up to which an entry is of one job; and by which
# the sum may exceed its jobs. Noticed by:
# tests/fio/results/test_json_output.py::test_jobs_of_a_group_are_counted_by_their_runtimes
_ALONE, _ROUNDING = 1.5, 0.1
_MAX_PORTS = 1 << 16
_MAX_JOBS = 4096  # Upper bound of fio (REAL_MAX_JOBS in fio.h)
# Size of an I/O: a zone that was finished counts with all its bytes, of which none were moved.
# Noticed by: test_unlike_jobs.py::test_io_without_a_name_has_the_block_size_of_its_bytes
_MAX_IO_BYTES = 1 << 28

_VERSION = re.compile(r"\s*fio-(\d{1,9})\.(\d{1,9})", re.ASCII)

_AMOUNT_KEY = {True: "total_ios", False: "io_bytes"}
# Unit by suffix of the key: fio 3 prints ``clat_ns``, fio 2 ``clat`` in microseconds
_UNITS = {"_ns": 1, "": 1000}


def parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor version of ``fio-3.33`` or ``fio-3.36-42-gabc-dirty``."""
    match = _VERSION.match(text)
    if match is None:
        raise OutputError(
            f"{text[:80]!r} is not a version of fio",
            hint="`fio --version` prints a line such as fio-3.33",
        )
    return int(match[1]), int(match[2])


def parse_output(text: str, *, path: str = "") -> RunOutput:
    """Return fio's result: the last complete JSON document of its output.

    Args:
        text: stdout of fio or the file of ``--output``, invalid UTF-8 already replaced.
    """
    documents = read_documents(text, path=path)
    output = read_document(documents.last, path=path)
    if not output.tool_version:
        root = Fields(documents.last, path=path)
        raise root.wrong("fio version", "a version: this is not a result of fio")
    return replace(output, diagnostics=documents.diagnostics, documents=documents.count)


def read_document(
    document: Mapping[str, object], *, path: str = "", is_whole: bool = True
) -> RunOutput:
    """Return the result in one document.

    Args:
        document: decoded; other tools may have removed the version.
        is_whole: whether each entry must be readable; if not, one that is not has no numbers.
    """
    root = Fields(document, path=path)
    return RunOutput(
        tool_version=root.text("fio version") or "",
        jobs=tuple(_read_jobs(root, is_whole=is_whole)),
        ended_utc_s=_ended(root),
        global_options=_global_options(root),
        client_options=_client_options(root),
        disputed=_disputed(root),
    )


def _ended(root: Fields) -> float | None:
    millis, seconds = root.number("timestamp_ms"), root.number("timestamp")
    if millis is not None:
        return millis / 1000
    return None if seconds is None else float(seconds)


def _global_options(root: Fields) -> dict[str, str]:
    """Return fio's global options.

    Up to 3.38 those of all clients are in one object; since 3.39 each client has its own.
    """
    if isinstance(root.raw.get("global options"), list):
        merged: dict[str, str] = {}
        for options in _client_options(root).values():
            merged |= options
        return merged
    block = root.child("global options")
    if block is None:
        return {}
    disputed = _disputed(root)
    return {key: text for key, text in block.texts().items() if key not in disputed}


def _disputed(root: Fields) -> frozenset[str]:
    """Return the global options that differ between clients, where they share one object."""
    block = root.raw.get("global options")
    if "client_stats" in root.raw and isinstance(block, Disputed):
        return block.keys_in_dispute
    return frozenset()


def _client_options(root: Fields) -> dict[tuple[str, int | None], dict[str, str]]:
    """Return the global options of each client, where fio reports them separately."""
    if not isinstance(root.raw.get("global options"), list):
        return {}
    options: dict[tuple[str, int | None], dict[str, str]] = {}
    for host in root.children("global options"):
        key = host.text("hostname") or "", host.count("port")
        texts = host.texts()
        options[key] = {name: texts[name] for name in texts if name not in {"hostname", "port"}}
    return options


def _read_jobs(root: Fields, *, is_whole: bool) -> Iterator[JobResult]:
    key = "client_stats" if "jobs" not in root.raw and "client_stats" in root.raw else "jobs"
    if key not in root.raw:
        raise root.wrong("jobs", "a list")
    entries = root.children(key)
    for entry in entries:
        try:
            job = _read_job(entry)
        except OutputError as error:
            if is_whole:
                raise
            job = _damaged_entry(entry, error)
        if key == "jobs":
            yield job
        elif len(entries) == 1 and job.name == SUM_OF_CLIENTS:  # others were cut out of the file
            yield replace(job, hostname="", port=None)
        elif job.name != SUM_OF_CLIENTS:
            yield replace(job, name=f"{job.hostname}:{job.name}")


def _damaged_entry(entry: Fields, error: OutputError) -> JobResult:
    """Return an entry without its numbers, under the name that it has."""
    texts = [str(entry.raw.get(key) or "") for key in ("jobname", "hostname")]
    name, hostname = (text if text.isprintable() else "" for text in texts)
    groupid, port = entry.raw.get("groupid"), entry.raw.get("port")
    return JobResult(
        name=name or "job",
        groupid=groupid if isinstance(groupid, int) and 0 <= groupid < _MAX_JOBS else 0,
        error=0,
        directions=(),
        hostname=hostname,
        port=port if isinstance(port, int) and 0 <= port < _MAX_PORTS else None,
        damage=error.message,
    )


def _read_job(entry: Fields) -> JobResult:
    start_ms = entry.number("job_start")
    options = entry.child("job options")
    steadystate = entry.child("steadystate")
    directions = tuple(_read_directions(entry))
    return JobResult(
        name=entry.text("jobname") or "",
        groupid=entry.need_count("groupid"),
        error=entry.need_count("error"),
        directions=directions,
        total_errors=entry.count("total_err") or 0,
        options={} if options is None else options.texts(),
        jobs_in_it=_jobs_in(entry, directions),
        elapsed_s=entry.number("elapsed"),
        cpu_usr=entry.number("usr_cpu"),
        cpu_sys=entry.number("sys_cpu"),
        depth_shares=read_depth_shares(entry),
        clat_shares=read_clat_shares(entry),
        start_utc_s=start_ms / 1000 if start_ms else None,
        steadystate=None if steadystate is None else dict(steadystate.raw),
        other_ios={name: block.need_count("total_ios") for name, block in _other_blocks(entry)},
        hostname=entry.text("hostname") or "",
        port=entry.count("port"),
    )


def _jobs_in(entry: Fields, directions: Sequence[DirectionResult]) -> int | None:
    """Return the least number of jobs in an entry, of whose runtimes ``job_runtime`` is the sum.

    It is the number itself unless some jobs ran much longer than others. The phases of one job that
    verifies what it wrote are in turn.
    """
    added_s = (entry.number("job_runtime") or 0.0) / 1000
    runtimes = [direction.runtime_s for direction in directions]
    options = entry.raw.get("job options")
    verifies = isinstance(options, Mapping) and "verify" in options
    longest_s = sum(runtimes) if verifies else max(runtimes, default=0.0)
    if not added_s or longest_s < _MIN_COUNTED_S or added_s > _MAX_JOBS * longest_s:
        return None
    jobs = added_s / longest_s
    return math.ceil(jobs - _ROUNDING) if jobs > _ALONE else 1


def _read_directions(entry: Fields) -> list[DirectionResult]:
    """Return the directions with I/O, syncs last."""
    directions: list[DirectionResult] = []
    for direction in _TRANSFERS:
        block = entry.child(direction.value)
        if block is not None and block.need_count(_AMOUNT_KEY[_counts_ios(block)]) != 0:
            directions.append(_read_transfer(direction, block))
    others = [_read_transfer(Direction.OTHER, block) for _, block in _other_blocks(entry)]
    other = merge_direction(others)
    directions = [*without_sum(directions), *([] if other is None else [other])]
    sync = entry.child("sync")
    if sync is not None:
        directions += _read_sync(
            sync, runtime_s=max((d.runtime_s for d in directions), default=0.0)
        )
    return directions


def _other_blocks(entry: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield the sections with I/O that fio itself does not write: patched builds name their own."""
    known = {direction.value for direction in Direction}
    for name, value in entry.raw.items():
        if name not in known and isinstance(value, Mapping) and "total_ios" in value:
            block = entry.child(name)
            if block is not None and (ios := block.need_count("total_ios")):
                raw = {"io_bytes": 0, "runtime": 0, **block.raw}
                if (block.number("io_bytes") or 0.0) > ios * _MAX_IO_BYTES:
                    raw = {**raw, "io_bytes": 0, "bw_bytes": 0}
                yield name, replace(block, raw=raw)


def _counts_ios(block: Fields) -> bool:
    """Return whether a direction has the number of its I/Os, as all have since fio 2.1.12."""
    return not {"total_ios", "short_ios", "drop_ios"}.isdisjoint(block.raw)


def _read_transfer(direction: Direction, block: Fields) -> DirectionResult:
    is_bytes = "io_kbytes" in block.raw
    io_bytes = block.need_count("io_bytes") if is_bytes else block.kib("io_bytes")
    runtime_s = block.duration_s("runtime")
    bandwidth, kib = block.number("bw_bytes"), block.number("bw")
    if bandwidth is None and kib is not None:
        exact = io_bytes / runtime_s if runtime_s else 0.0  # fio cuts off less than 1 KiB/s
        bandwidth = exact if 0 < exact - kib * 1024 < 1024 else kib * 1024
    return DirectionResult(
        direction=direction,
        io_bytes=io_bytes,
        total_ios=block.need_count("total_ios") if _counts_ios(block) else None,
        runtime_s=runtime_s,
        iops=block.number("iops"),
        bw_bytes_per_s=bandwidth,
        **_windows(block),
        lat=read_latency(block, "lat"),
        clat=read_latency(block, "clat"),
        slat=read_latency(block, "slat"),
    )


def _windows(block: Fields) -> dict[str, float | None]:
    """Return fio's statistics of its windows; without samples they are meaningless zeros."""
    names = ("iops_min", "iops_max", "iops_stddev")
    if block.count("iops_samples") == 0:
        return {}
    return {name: block.number(name) for name in names}


def _read_sync(block: Fields, *, runtime_s: float) -> list[DirectionResult]:
    """Return the syncs, if any; fio reports no runtime for them, so they get the transfers'.

    ``sync.total_ios`` excludes fdatasync, the samples of ``sync.lat_ns`` include it.
    """
    lat = read_latency(block, "lat")
    if lat is None:
        return []
    total = lat.count or sum(lat.bins.values()) or block.count("total_ios") or None
    return [
        DirectionResult(
            direction=Direction.SYNC,
            io_bytes=0,
            total_ios=total,
            runtime_s=runtime_s,
            iops=None,
            bw_bytes_per_s=None,
            lat=lat,
        )
    ]


def read_latency(direction: Fields, kind: str) -> Latency | None:
    """Return ``lat``, ``clat`` or ``slat`` of a direction.

    Returns:
        None without samples: psync has no submission latency, gtod_reduce has none at all.
    """
    for suffix, unit_ns in _UNITS.items():
        block = direction.child(kind + suffix)
        if block is not None:
            return _read_block(block, unit_ns)
    return None


def _read_block(block: Fields, unit_ns: int) -> Latency | None:
    per_second = 1e9 / unit_ns
    count = block.count("N")
    if count == 0:
        return None
    low, high, mean = (block.need_number(key) for key in ("min", "max", "mean"))
    if count is None and low == high == mean == 0:
        return None
    return Latency(
        count=count,
        min_s=low / per_second,
        max_s=high / per_second,
        mean_s=mean / per_second,
        stddev_s=block.need_number("stddev") / per_second,
        percentiles=_read_percentiles(block.child("percentile"), per_second),
        bins=_read_bins(block.child("bins"), unit_ns),
    )


def _read_percentiles(block: Fields | None, per_second: float) -> dict[float, float]:
    """Return percentiles in seconds; fio before 3.4 pads the list with ``0.00``."""
    if block is None:
        return {}
    percentiles: dict[float, float] = {}
    for key in block.raw:
        try:
            percentile = float(key)
        except ValueError:
            raise block.wrong(key, "a percentile") from None
        if percentile == 0:
            continue
        if not 0 < percentile <= 100:
            raise block.wrong(key, "a percentile")
        percentiles[percentile] = block.need_number(key) / per_second
    return dict(sorted(percentiles.items()))


def _read_bins(block: Fields | None, unit_ns: int) -> dict[int, int]:
    """Return counts by midpoint; fio 2.2.12 to 2.19 add constants of its source code."""
    if block is None:
        return {}
    midpoints = [key for key in block.raw if not key.startswith("FIO_IO_U_")]
    for key in midpoints:
        if not (key.isdigit() and key.isascii() and len(key) < 16):
            raise block.wrong(key, "a latency bin")
    values = [block.raw[key] for key in midpoints]
    counts = values if are_counts(values) else [block.need_count(key) for key in midpoints]
    counts_of = {int(key) * unit_ns: count for key, count in zip(midpoints, counts, strict=True)}
    return dict(sorted(counts_of.items()))
