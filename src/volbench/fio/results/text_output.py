"""Parser of fio's normal and terse output, which round values and leave out most options.

Formats: fio HOWTO, "Interpreting the output" and "Terse output", and `show_thread_status_normal`
and `show_thread_status_terse_all` of stat.c in fio 2.1 to 3.36.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise, takewhile

from volbench.errors import OutputError
from volbench.model.results.result import (
    SUM_OF_CLIENTS,
    Direction,
    DirectionResult,
    JobResult,
    Latency,
    RunOutput,
    without_sum,
)

_NUMBER = r"\s*([\d.]+[kKMG]?)\s*"
# Fio 2.0 printed its version alone
_VERSION = re.compile(r"((?:fio-|(?=2\.0\.))\d+\.\S+)\s*")
# A job before its start, such as ``seq: (g=1): rw=write, bs=4K-4K/4K-4K/4K-4K, ...``
_HEADER = re.compile(
    r"^(?P<name>\S.*?): \(g=(?P<group>\d+)\): rw=(?P<rw>[a-z,]+), bs=(?P<bs>.*?),"
    r"\s*ioengine=(?P<ioengine>[\w:./-]+),\s*iodepth=(?P<iodepth>\d+)(?P<cloned>\s+\.\.\.)?\s*$"
)
_STARTED = re.compile(r"\S.*?: \(g=\d+\): rw=")
_MAX_WRAPS = 3  # Lines behind the first of a job that was wrapped at 72 columns or so
_ENTRY = re.compile(
    r"^(?P<name>\S.*?): \(groupid=(?P<group>\d{1,9}), jobs=(?P<jobs>\d{1,9})\):"
    r" err=\s*(?P<error>\d{1,9}).*?: pid=(?P<pid>\d+)(?:: (?P<time>.*\S))?"
)
# The text of a log before fio's own, such as the time, and one line of an entry in it
_PREFIXED = re.compile(
    r"^(?P<prefix>\S.*?) {2,}(?:(?:read|write|trim|mixed)\s*: .*iops=|cpu\s*: usr=)",
    re.MULTILINE | re.IGNORECASE,
)
# The same in a quotation
_INDENTED = re.compile(r"^([ \t>|]+)\S.*?: \(groupid=\d+, jobs=\d+\): err=", re.MULTILINE)
_MESSAGE = re.compile(r"(?:fio|verify): ")  # of an error, or that fio was stopped
# Behind the last line of an entry; its lines may have lost their indentation in a quotation
_END = re.compile(rf"\s*(?:$|Run status group|Disk stats|{_VERSION.pattern}$)")
# What shows that lines of normal output are there: a job, its rates, or an error of fio
_TRACES = re.compile(
    r"^[ \t>|]*(\S.*: \(g=\d+\): rw=.*|(?i:read|write|trim|mixed)\s*: (?:IOPS=|io=|bw=).*msec"
    r"|fio: pid=\d+, err=\d+/.*)",
    re.MULTILINE,
)
_DIRECTION = re.compile(r"^\s*(read|write|trim|mixed)\s*: (.*(?:IOPS|iops)=.*)$")
_AMOUNT = re.compile(r"([\d.]+)\s*([KMGTP]?i?B)")
_RUNTIME = re.compile(r"(?:/|runt=\s*)(\d+)msec")
_BANDWIDTH = re.compile(r"bw=\s*([\d.]+)([KMGTP]?i?)", re.IGNORECASE)
_IOPS = re.compile(rf"iops={_NUMBER}", re.IGNORECASE)
_LATENCY = re.compile(
    rf"^\s*(slat|clat|lat|sync) \((nsec|usec|msec|sec)\)\s*:"
    rf" min={_NUMBER}, max={_NUMBER}, avg={_NUMBER}, stdev={_NUMBER}(?:\s.*)?$"
)
_PERCENTILES = re.compile(r"^\s*(slat|clat|lat|sync) percentiles \((nsec|usec|msec|sec)\):")
_PERCENTILE = re.compile(r"([\d.]+)th=\[\s*>?=?\s*(\d+)\]")
_WINDOWS = re.compile(
    r"^\s*iops\s*: min=\s*([\d.]+), max=\s*([\d.]+), avg=\s*[\d.]+, stdev=\s*([\d.]+)"
)
_CPU = re.compile(r"^\s*cpu\s*: usr=([\d.]+)%, sys=([\d.]+)%")
_DEPTHS = re.compile(r"^\s*IO depths\s*:(.*)$")
_SHARE = re.compile(r"(?:>=)?(\d+)=([\d.]+)%")
# ``issued rwts: total=1,2,0,0``, and up to fio 2 ``issued    : total=r=1/w=2/d=0``
_ISSUED = re.compile(r"^\s*issued\b.*?: total=(?:r=)?(\d+)[,/](?:w=)?(\d+)[,/](?:d=)?(\d+)")
_ERRORS = re.compile(r"^\s*errors\s*: total=(\d+)")
_SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3, "sec": 1.0}
_SCALE = {"k": 1e3, "M": 1e6, "G": 1e9}
_TRANSFERS = (Direction.READ, Direction.WRITE, Direction.TRIM)
# Rounding of fio's amounts, of at least three digits, is below this share
_MAX_ROUNDING = 0.01
_NO_FRACTION = re.compile(r"\d+\.0+(?!\d)")
# A percentile, the middle of fio's bin, over the maximum that is the end of it
_MAX_OVER_MAX = 1.01
_DEPTH_CLASSES = (1, 2, 4, 8, 16, 32, 64)

NORMAL, TERSE = "normal", "terse"

_TERSE = re.compile(
    r"^(?:[345];(?P<version>fio-[^;]+)|2);(?P<name>[^;]*);(\d{1,9});(\d{1,9});\d+;\d+;"
)
_V5 = "5"


def read_text_output(text: str, *, path: str = "") -> list[RunOutput]:
    """Return the results in normal or terse output, one per process; none in any other text.

    Of several reports of one job (``--status-interval``) the last one counts, unless it cannot
    continue the one before: sums over clients have no process ID. Lines of terse output
    do not say whether they are of one process, so each is a result of its own.
    """
    text = _without_prefix(text)
    margin = _INDENTED.search(text)
    lines = [line.removeprefix(margin[1] if margin else "") for line in text.splitlines()]
    outputs = list(_normal_outputs(lines)) or [
        output
        for number, line in enumerate(lines, start=1)
        if (output := _terse_output(line, number=number)) is not None
    ]
    jobs = [job for output in outputs for job in output.jobs]
    if jobs and all(job.damage for job in jobs):
        raise OutputError(
            jobs[0].damage, hint="fio was killed, or the file was edited: measure again", path=path
        )
    if not outputs and (trace := _TRACES.search(text)):
        line = " ".join(trace[1].split())[:80]
        raise OutputError(
            f"this has lines of fio's normal output, such as {line!r}, and none that begins a"
            " result (NAME: (groupid=0, jobs=1): err= 0: pid=1)",
            hint="import all that fio printed; if that is all, fio was killed or failed",
            path=path,
        )
    return outputs


def _without_prefix(text: str) -> str:
    """Return the lines of a log without the prefix of another program."""
    match = _PREFIXED.search(text)
    if match is None:
        return text
    shape = re.sub(r"\d+", r"\\d+", re.escape(match["prefix"]))
    if not re.search(rf"^{shape}[ ]?[^\s:].*?: \(groupid=\d", text, re.MULTILINE):
        return text  # it is a line of another program
    return re.sub(rf"^{shape}[ ]?", "", text, flags=re.MULTILINE)


def _scaled(text: str) -> float:
    return float(text.rstrip("kKMG")) * _SCALE.get(text[-1].replace("K", "k"), 1.0)


def _bytes(number: str, unit: str, *, is_decimal: bool) -> float:
    """Return an amount in bytes: ``KiB``, or ``KB``, which is 1024 bytes before fio 2.16."""
    power = " KMGTP".index(unit[0]) if unit[0] != "B" else 0
    base: int = 1000 if is_decimal and "i" not in unit else 1024
    return float(number) * float(base**power)


@dataclass
class _Block:
    """Numbers of an entry for one direction."""

    about: str  # the line with its rates
    latencies: dict[str, Latency] = field(default_factory=dict)  # by kind
    windows: tuple[str, str, str] | None = None  # min, max and standard deviation of IOPS


@dataclass
class _Entry:
    """One entry of normal output."""

    blocks: dict[Direction, _Block] = field(default_factory=dict)
    issued: tuple[int, ...] = ()  # reads, writes and trims
    values: dict[str, float] = field(default_factory=dict)  # of `JobResult`
    depth_shares: dict[int, float] = field(default_factory=dict)

    def read(self, lines: Iterator[str]) -> None:
        """Take the lines of the entry."""
        block, kind, unit_s, rounding_s = _Block(""), "", 1.0, 0.0
        for line in lines:
            if match := _DIRECTION.match(line):
                block = self.blocks[Direction(match[1])] = _Block(match[2])
            elif match := _LATENCY.match(line):
                kind = match[1]
                if kind == "sync":
                    block = self.blocks[Direction.SYNC] = _Block("")
                unit_s = _SECONDS[match[2]]
                low, high, mean, spread = (_scaled(text) * unit_s for text in match.groups()[2:])
                rounding_s = _last_digit(match[4]) * unit_s
                block.latencies[kind] = Latency(None, low, high, mean, spread)
            elif match := _PERCENTILES.match(line):
                kind, unit_s = match[1], _SECONDS[match[2]]
            elif line.lstrip().startswith("|") and kind in block.latencies:
                before = block.latencies[kind]
                most_s = _MAX_OVER_MAX * (before.max_s + rounding_s)
                named = {float(p): int(value) * unit_s for p, value in _PERCENTILE.findall(line)}
                named |= {
                    p: before.max_s for p, value in named.items() if before.max_s < value < most_s
                }
                block.latencies[kind] = replace(before, percentiles=before.percentiles | named)
            elif match := _WINDOWS.match(line):
                block.windows = match[1], match[2], match[3]
            else:
                self._read_totals(line)

    def _read_totals(self, line: str) -> None:
        if match := _CPU.match(line):
            self.values |= {"cpu_usr": float(match[1]), "cpu_sys": float(match[2])}
        elif match := _DEPTHS.match(line):
            self.depth_shares = {int(at): float(share) for at, share in _SHARE.findall(match[1])}
        elif match := _ISSUED.match(line):
            self.issued = tuple(map(int, match.groups()))
        elif match := _ERRORS.match(line):
            self.values["total_errors"] = int(match[1])

    def directions(self, block_bytes: int | None) -> Iterator[DirectionResult]:
        """Yield the directions with I/O, syncs last.

        The number of I/Os and the runtime are exact, so IOPS are; bytes are where one block size
        explains them.
        """
        longest_s = 0.0
        for direction, block in self.blocks.items():
            if direction is Direction.SYNC:
                lat = block.latencies["sync"]
                yield DirectionResult(direction, 0, None, longest_s, None, None, lat=lat)
                continue
            runtime, amount = _RUNTIME.search(block.about), _printed_bytes(block.about)
            if runtime is None or not amount:
                continue
            runtime_s = int(runtime[1]) / 1000
            longest_s = max(longest_s, runtime_s)
            issued = dict(zip(_TRANSFERS, self.issued, strict=False)).get(direction)
            total = sum(self.issued) if direction is Direction.MIXED and self.issued else issued
            if total == 0:
                continue
            exact = (total or 0) * (block_bytes or 0)
            if not _is_rounded(exact, *amount):
                exact = round(_likely(amount, block.about, runtime_s))
            io_bytes = exact
            iops = total / runtime_s if total and runtime_s else None
            printed = _IOPS.search(block.about)
            if printed and (iops is None or not _is_rounded(iops, *_meanings(printed[1]))):
                iops = _scaled(printed[1])
            low, high, spread = map(float, block.windows or ("nan",) * 3)
            yield DirectionResult(
                direction=direction,
                io_bytes=io_bytes,
                total_ios=total,
                runtime_s=runtime_s,
                iops=iops,
                bw_bytes_per_s=io_bytes / runtime_s if runtime_s else None,
                iops_min=low if block.windows else None,
                iops_max=high if block.windows else None,
                iops_stddev=spread if block.windows else None,
                lat=block.latencies.get("lat"),
                clat=block.latencies.get("clat"),
                slat=block.latencies.get("slat"),
            )


def _is_rounded(exact: float, *meanings: float) -> bool:
    """Return whether a printed number may be a rounded or truncated form of an exact one.

    Args:
        meanings: of the printed number.
    """
    return any(abs(exact - value) <= max(1.0, _MAX_ROUNDING * value) for value in meanings)


def _last_digit(text: str) -> float:
    """Return the value of the last digit of a printed number, such as 100 for ``1.2k``."""
    decimals = len(text.rstrip("kKMG").partition(".")[2])
    return _scaled("1" + text[len(text.rstrip("kKMG")) :]) / 10.0**decimals


def _meanings(text: str, scaled: Callable[[str], float] = _scaled) -> tuple[float, ...]:
    """Return the numbers that a printed one stands for.

    ``21.0`` is also 22: fio loses what it carries where 21.98 is rounded up (``num2str``).
    """
    if not _NO_FRACTION.match(text):
        return (scaled(text),)
    whole, _, rest = text.partition(".")
    return scaled(text), scaled(f"{int(whole) + 1}.{rest}")


def _likely(amounts: tuple[float, ...], about: str, runtime_s: float) -> float:
    """Return the amount that explains the printed bandwidth best."""
    rate = _BANDWIDTH.search(about)
    if rate is None:
        return amounts[0]
    moved = _bytes(rate[1], f"{rate[2]}B", is_decimal="IOPS=" in about) * runtime_s
    return min(amounts, key=lambda amount: abs(amount - moved))


def _printed_bytes(about: str) -> tuple[float, ...]:
    """Return the bytes in ``(143MiB/2001msec)``, or in ``io=143MB`` before fio 2.16.

    Returns:
        what the number can mean, the most likely first; empty without it.
    """
    is_new = "IOPS=" in about
    match = re.search(r"\(([^()]*)/\d+msec\)", about) if is_new else re.search(r"io=(\S+)", about)
    amount = _AMOUNT.search(match[1]) if match else None
    if amount is None:
        return ()
    unit = amount[2]
    return _meanings(amount[1], lambda number: _bytes(number, unit, is_decimal=is_new))


def _normal_outputs(lines: list[str]) -> Iterator[RunOutput]:
    """Yield the result of each process.

    One begins at a line with fio's version, which follows those of its jobs, or at a report behind
    the totals of another.
    """
    options: dict[tuple[str, str], dict[str, str]] = {}
    started: dict[tuple[str, str], dict[str, str]] = {}
    version, has_totals, begin = "", False, 0
    lines = _unwrapped(lines)
    cloned = {
        header["name"]
        for line, following in pairwise(lines)
        if (header := _HEADER.match(line)) and (header["cloned"] or following == "...")
    }
    jobs: dict[tuple[str, str], JobResult] = {}
    ended: dict[tuple[str, str], datetime | None] = {}
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            started[_free_name(header, started), header["group"]] = _header_options(header)
        elif named := _VERSION.fullmatch(line):
            if jobs:
                yield _output(version, jobs, lines[begin:number])
            version, jobs, options, started, has_totals = named[1], {}, started, {}, False
            begin = number
        elif line.startswith("Run status group"):
            has_totals = True
        elif match := _ENTRY.match(line):
            key = match["name"], match["pid"]
            if jobs and has_totals and key not in jobs and key[0] != SUM_OF_CLIENTS:
                yield _output(version, jobs, lines[begin:number])
                jobs, has_totals, begin = {}, False, number
            body = takewhile(_is_inside, lines[number + 1 :])
            group = {name: texts for (name, at), texts in options.items() if at == match["group"]}
            own = _own_options(key, group, earlier=jobs, cloned=cloned)
            job = _parsed_job(match, body, own, group, number=number + 1)
            end = _time(match["time"])
            if key in jobs and not _continues(job, end, jobs[key], ended[key]):
                yield _output(version, jobs, lines[begin:number])
                jobs, has_totals, begin = {}, False, number
            jobs[key], ended[key] = job, end
    if jobs:
        yield _output(version, jobs, lines[begin:])


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Return the lines with each job on one, which mails and pages wrap; the others are empty."""
    whole = list(lines)
    for first, line in enumerate(lines):
        joined = line
        for last in range(first + 1, min(first + 1 + _MAX_WRAPS, len(lines))):
            if _HEADER.match(joined) or not _STARTED.match(joined):
                break
            joined = joined.rstrip(" \\") + lines[last].strip()
            if _HEADER.match(joined):
                whole[first : last + 1] = [*[""] * (last - first), joined]
    return whole


def _output(
    version: str, jobs: Mapping[tuple[str, str], JobResult], lines: Sequence[str]
) -> RunOutput:
    """Return the result of a process; the sums over its clients only where these are missing.

    Args:
        lines: of the process.
    """
    own = [job for job in jobs.values() if job.name != SUM_OF_CLIENTS]
    diagnostics = "\n".join(line for line in lines if _MESSAGE.match(line))
    return RunOutput(version, tuple(own or jobs.values()), diagnostics=diagnostics, form=NORMAL)


def _time(text: str | None) -> datetime | None:
    """Return the time of a report, such as ``Fri Sep  8 07:53:08 2023``; None for any other."""
    try:
        return datetime.strptime(text or "", "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007 - of no zone
    except ValueError:
        return None


def _continues(
    job: JobResult, end: datetime | None, earlier: JobResult, before: datetime | None
) -> bool:
    """Return whether a report may be a longer one of an earlier job of that name and process.

    Args:
        end: of the report, None if unknown.
        before: end of the earlier one.
    """
    done = {part.direction for part in job.directions}
    if not {part.direction for part in earlier.directions} <= done:
        return False
    longest_s = max((part.runtime_s for part in job.directions), default=0.0)
    if end is None or before is None or not longest_s:
        return True
    return 0 <= (end - before).total_seconds() < longest_s


def _is_inside(line: str) -> bool:
    return not (_END.match(line) or _ENTRY.match(line) or _HEADER.match(line))


def _damaged_job(name: str, group: str, reason: str) -> JobResult:
    return JobResult(name, groupid=int(group), error=0, directions=(), damage=reason)


def _free_name(header: re.Match[str], started: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return the name of a job, with a number behind it if unlike ones of that name precede it."""
    options, names = _header_options(header), [header["name"]]
    while started.get((names[-1], header["group"]), options) != options:
        names.append(f"{header['name']} ({len(names) + 1})")
    return names[-1]


def _own_options(
    key: tuple[str, str],
    group: Mapping[str, dict[str, str]],
    *,
    earlier: Collection[tuple[str, str]],
    cloned: Collection[str],
) -> dict[str, str]:
    """Return the options of an entry: common options where several sections may be meant.

    Args:
        key: its name and process.
        group: options of the sections of its reporting group.
        earlier: keys of the entries before it, which are in the order of the sections.
        cloned: names of sections with an unknown number of entries.
    """
    named = {name: texts for name, texts in group.items() if name.partition(" (")[0] == key[0]}
    if len(named) > 1 and key[0] in cloned:
        return dict(set.intersection(*(set(texts.items()) for texts in named.values())))
    number = sum(name == key[0] and process != key[1] for name, process in earlier)
    return [*named.values(), {}][min(number, max(0, len(named) - 1))]


def _parsed_job(
    match: re.Match[str],
    body: Iterator[str],
    own: dict[str, str],
    group: dict[str, dict[str, str]],
    *,
    number: int,
) -> JobResult:
    """Return an entry, damaged where a line cannot be read.

    Args:
        own: its options.
        group: options of the sections of its reporting group, all of them in it if it has several.
        number: of its first line.
    """
    try:
        return _sound_job(match, body, own, group)
    except ValueError as error:
        reason = f"line {number} of fio's normal output, or one below, has {error}"
        return _damaged_job(match["name"], match["group"], reason)


def _sound_job(
    match: re.Match[str],
    body: Iterator[str],
    options: dict[str, str],
    group: dict[str, dict[str, str]],
) -> JobResult:
    entry = _Entry()
    is_merged = int(match["jobs"]) > 1 and any(each != options for each in group.values())
    entry.read(body)
    if not (entry.blocks or entry.issued or int(match["error"])):
        raise ValueError("no rate and no number of I/Os")
    block_bytes = int(options["bs"]) if "bs" in options and not is_merged else None
    several = {"numjobs": match["jobs"], "group_reporting": "1"} if int(match["jobs"]) > 1 else {}
    return JobResult(
        name=match["name"],
        groupid=int(match["group"]),
        error=int(match["error"]),
        directions=without_sum(entry.directions(block_bytes)),
        options=options | several,
        merged=group if is_merged else {},
        depth_shares=entry.depth_shares,
        total_errors=int(entry.values.get("total_errors", 0)),
        cpu_usr=entry.values.get("cpu_usr"),
        cpu_sys=entry.values.get("cpu_sys"),
    )


def _header_options(match: re.Match[str]) -> dict[str, str]:
    """Return the options before the start of a job; a range of block sizes is left out."""
    is_new = "(R)" in match["bs"] or "B-" in match["bs"]
    sizes = {
        round(_bytes(number, f"{unit}B" if unit[-1:] != "B" else unit, is_decimal=is_new))
        for number, unit in re.findall(r"([\d.]+)([KMG]?i?B?)(?=[-/,\s]|$)", match["bs"])
    }
    options = {name: match[name] for name in ("rw", "ioengine", "iodepth")}
    return options | ({"bs": str(*sizes)} if len(sizes) == 1 else {})


def _terse_output(line: str, *, number: int) -> RunOutput | None:
    """Return the result in a line of terse output; None for any other line."""
    match = _TERSE.match(line)
    if match is None or not (match["version"] or "%=" in line):
        return None
    fields = line.strip().split(";")
    values = iter(fields[5 if match["version"] else 4 :])
    directions = []
    try:
        for direction in _TRANSFERS:
            first = next(values)
            if "%" in first:  # the CPU time behind the last direction; versions 2 and 3 lack trims
                break
            result = _terse_direction(direction, first, values, version=fields[0])
            directions += [result] if result.io_bytes else []
        else:
            first = next(values)
        rest = [first, *values]
        shares = [float(share.rstrip("%")) for share in rest[5 : 5 + len(_DEPTH_CLASSES)]]
        job = JobResult(
            name=match["name"],
            groupid=int(match[3]),
            error=int(match[4]),
            directions=without_sum(directions, is_terse=True),
            cpu_usr=float(rest[0].rstrip("%")),
            cpu_sys=float(rest[1].rstrip("%")),
            depth_shares=dict(zip(_DEPTH_CLASSES, shares, strict=True)),
        )
    except (StopIteration, ValueError, IndexError):
        reason = f"line {number} of fio's terse output is not complete"
        job = _damaged_job(match["name"], match[3], reason)
    return RunOutput(match["version"] or "", (job,), form=TERSE)


def _terse_direction(
    direction: Direction, kib: str, values: Iterator[str], *, version: str
) -> DirectionResult:
    """Return one direction; latencies are in microseconds, and in whole ones but for means."""
    bandwidth_kib, iops, runtime_ms = [_finite(next(values)) for _ in range(3)]
    slat, clat = _terse_latency(values), _terse_latency(values)
    named = [next(values).split("%=") for _ in range(20)]
    percentiles = {float(name): int(value) / 1e6 for name, value in named if float(name)}
    lat = _terse_latency(values)
    for _ in range(5):  # bandwidth of windows
        next(values)
    windows = [_finite(next(values)) for _ in range(6)] if version == _V5 else []
    return DirectionResult(
        direction=direction,
        io_bytes=int(kib) * 1024,
        total_ios=None,
        runtime_s=runtime_ms / 1000,
        iops=iops,
        bw_bytes_per_s=bandwidth_kib * 1024,
        iops_min=windows[1] if windows else None,
        iops_max=windows[2] if windows else None,
        iops_stddev=windows[4] if windows else None,
        lat=lat,
        clat=replace(clat, percentiles=percentiles) if clat else None,
        slat=slat,
    )


def _finite(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{text} is not a measurement")
    return value


def _terse_latency(values: Iterator[str]) -> Latency | None:
    low, high, mean, spread = [_finite(next(values)) / 1e6 for _ in range(4)]
    return Latency(None, low, high, mean, spread) if high or mean else None
