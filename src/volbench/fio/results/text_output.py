"""Parser of fio's normal output, which rounds values and leaves out most options.

Format: fio HOWTO, "Interpreting the output", and `show_thread_status_normal` of stat.c in fio 2.1
to 3.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from volbench.errors import OutputError
from volbench.fio.results.terse_output import terse_output
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
    r"\s*ioengine=(?P<ioengine>[\w:./-]+),\s*iodepth=(?P<iodepth>\d+)(?:\s+\.\.\.)?\s*$"
)
_ENTRY = re.compile(
    r"^(?P<name>\S.*?): \(groupid=(?P<group>\d{1,9}), jobs=(?P<jobs>\d{1,9})\):"
    r" err=\s*(?P<error>\d{1,9}).*?: pid=(?P<pid>\d+)"
)
# The margin of a quotation
_INDENTED = re.compile(r"^([ \t>|]+)\S.*?: \(groupid=\d+, jobs=\d+\): err=", re.MULTILINE)
_MESSAGE = re.compile(r"(?:fio|verify): ")  # of an error, or that fio was stopped
# Behind the last line of an entry; its lines may have lost their indentation in a quotation
_END = re.compile(rf"\s*(?:$|Run status group|Disk stats|{_VERSION.pattern}$)")
_ENDS = (_END, _ENTRY, _HEADER)
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


def read_text_output(text: str, *, path: str = "") -> list[RunOutput]:
    """Return the results in normal or terse output, one per process; none in any other text.

    Of several reports of one job (``--status-interval``) the last one counts. Lines of terse output
    do not say whether they are of one process, so each is a result of its own.
    """
    margin = _INDENTED.search(text)
    lines = [line.removeprefix(margin[1] if margin else "") for line in text.splitlines()]
    terse = (terse_output(line, number=number) for number, line in enumerate(lines, start=1))
    outputs = list(_normal_outputs(lines)) or [output for output in terse if output]
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
    """Return whether the meanings of a printed number may be rounded forms of an exact one."""
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
    """Return what the bytes in ``(143MiB/2001msec)``, or ``io=143MB`` before 2.16, can mean."""
    is_new = "IOPS=" in about
    match = re.search(r"\(([^()]*)/\d+msec\)", about) if is_new else re.search(r"io=(\S+)", about)
    amount = _AMOUNT.search(match[1]) if match else None
    if amount is None:
        return ()
    unit = amount[2]
    return _meanings(amount[1], lambda number: _bytes(number, unit, is_decimal=is_new))


def _normal_outputs(lines: list[str]) -> Iterator[RunOutput]:
    """Yield the result of each process.

    It begins at fio's version behind the lines of its jobs, or behind the totals of another.
    """
    sections: list[re.Match[str]] = []
    started: list[re.Match[str]] = []
    version, has_totals, begin = "", False, 0
    jobs: dict[tuple[str, str], JobResult] = {}
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            started.append(header)
        elif named := _VERSION.fullmatch(line):
            if jobs:
                yield _output(version, jobs, lines[begin:number])
            version, jobs, sections, started, has_totals = named[1], {}, started, [], False
            begin = number
        elif line.startswith("Run status group"):
            has_totals = True
        elif match := _ENTRY.match(line):
            key = match["name"], match["pid"]
            is_sum = match["name"] == SUM_OF_CLIENTS  # it has no process ID
            if jobs and (key in jobs if is_sum else has_totals and key not in jobs):
                yield _output(version, jobs, lines[begin:number])
                jobs, has_totals, begin = {}, False, number
            body = takewhile(lambda t: not any(p.match(t) for p in _ENDS), lines[number + 1 :])
            group = [header for header in sections if header["group"] == match["group"]]
            try:
                jobs[key] = _parsed_job(match, body, group)
            except ValueError as error:
                reason = f"line {number + 1} of fio's normal output, or one below, has {error}"
                jobs[key] = JobResult(
                    match["name"], int(match["group"]), error=0, directions=(), damage=reason
                )
    if jobs:
        yield _output(version, jobs, lines[begin:])


def _output(
    version: str, jobs: Mapping[tuple[str, str], JobResult], lines: Sequence[str]
) -> RunOutput:
    """Return the result of a process; the sums over its clients only where these are missing."""
    own = [job for job in jobs.values() if job.name != SUM_OF_CLIENTS]
    diagnostics = "\n".join(line for line in lines if _MESSAGE.match(line))
    return RunOutput(version, tuple(own or jobs.values()), diagnostics=diagnostics, form="normal")


def _parsed_job(
    match: re.Match[str], body: Iterator[str], group: Sequence[re.Match[str]]
) -> JobResult:
    """Return an entry; its options are what all sections of its name have in common."""
    entry = _Entry()
    entry.read(body)
    if not (entry.blocks or entry.issued or int(match["error"])):
        raise ValueError("no rate and no number of I/Os")
    named = [_header_options(header) for header in group if header["name"] == match["name"]]
    options = dict(set.intersection(*(set(each.items()) for each in named))) if named else {}
    merged = {header["name"]: _header_options(header) for header in group}
    is_merged = int(match["jobs"]) > 1 and any(each != options for each in merged.values())
    block_bytes = int(options["bs"]) if "bs" in options and not is_merged else None
    several = {"numjobs": match["jobs"], "group_reporting": "1"} if int(match["jobs"]) > 1 else {}
    return JobResult(
        name=match["name"],
        groupid=int(match["group"]),
        error=int(match["error"]),
        directions=without_sum(entry.directions(block_bytes)),
        options=options | several,
        merged=merged if is_merged else {},
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
