"""Table of watched disks on a terminal, drawn again with each sample; elsewhere a line a minute.

Its columns are those of ``iostat -x``, with reads and writes apart. It is drawn without a library,
so that watching many disks costs little. A line has the mean rates since the one before.
"""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

from volbench.extensions.watching.watch_loop import TOTALLED, LiveDisk, LiveProcesses
from volbench.present.formatting import printable
from volbench.units import (
    counted_noun,
    format_capacity,
    format_count,
    format_duration,
    format_rate,
    format_size,
)

_PLAIN_S = 60.0  # Between two lines in a log.
_NAME = 17  # So that a row fits 79 columns
_MOST_COLUMNS = 79
_HEADS = ("r/s", "w/s", "rMB/s", "wMB/s", "rsize", "wsize", "r_ms", "w_ms", "queue", "util%")
_WIDTHS = (6, 6, 5, 5, 5, 5, 5, 5, 5, 5)


class LiveTable:
    """Shows disks on a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._lines = 0
        self._wrote_s = -math.inf
        self._before: dict[tuple[str, str], dict[str, float]] = {}  # when the last line was written

    def __call__(
        self, disks: Sequence[LiveDisk], elapsed_s: float, processes: LiveProcesses
    ) -> None:
        """Show the disks and processes after a sample."""
        now_s = time.monotonic()
        if self._is_terminal:
            top = top_lines(processes)
            rows = shutil.get_terminal_size().lines - 5 - len(top)
            lines = table_lines(disks, elapsed_s, most=max(1, rows))
            self._draw([*lines, *top])
        elif now_s - self._wrote_s >= _PLAIN_S and any(disk.rates for disk in disks):
            self._wrote_s = now_s
            since = [rates for disk in disks if (rates := self._mean_rates(disk))]
            self._stream.write(f"{total_line(since, elapsed_s)}\n")
            self._stream.flush()

    def say(self, sentence: str) -> None:
        """Print a sentence with the time, above the table."""
        up = f"\x1b[{self._lines}A\x1b[J" if self._lines else ""
        self._lines = 0
        now = time.strftime("%H:%M:%S UTC", time.gmtime())
        self._stream.write(f"{up}{now}: {printable(sentence)}\n")
        self._stream.flush()

    def _mean_rates(self, disk: LiveDisk) -> dict[str, float]:
        """Return the mean rates of a disk since the last call; empty without a sample."""
        key = disk.host, disk.device
        before, self._before[key] = self._before.get(key, {}), dict(disk.moved)
        grown = {name: value - before.get(name, 0.0) for name, value in disk.moved.items()}
        seconds = grown["seconds"]
        return {name: grown[name] / seconds for name in TOTALLED} if seconds else {}

    def _draw(self, lines: Sequence[str]) -> None:
        columns = shutil.get_terminal_size().columns
        up = f"\x1b[{self._lines}A" if self._lines else ""
        body = "".join(f"\x1b[K{line[: columns - 1]}\n" for line in lines)
        self._stream.write(f"{up}{body}\x1b[J")
        self._stream.flush()
        self._lines = len(lines)


def total_line(known: Sequence[Mapping[str, float]], elapsed_s: float) -> str:
    """Return the rates of disks together in one line."""
    reads, writes = (sum(each[f"{way}_iops"] for each in known) for way in ("read", "write"))
    moved = sum(each[f"{way}_bw_bytes_per_s"] for each in known for way in ("read", "write"))
    return (
        f"{format_duration(round(elapsed_s))}: {counted_noun(len(known), 'disk')}, "
        f"{format_count(reads)} reads/s, {format_count(writes)} writes/s, {moved / 1e6:.1f} MB/s"
    )


def top_lines(processes: LiveProcesses) -> list[str]:
    """Return a line with the busiest processes of all hosts, and why others have none."""
    rates, lines = Counter[str](), []
    for host, interval in processes.items():
        if isinstance(interval, str):
            lines.append(f"{printable(host)}: no processes: {printable(interval)}")
            continue
        for process, (read, written, _) in interval.counts.items():
            name = printable(process.name or f"pid {process.pid}")
            place = f"{printable(host)}:{name}" if len(processes) > 1 else name
            rates[place] += round((read + written) / interval.interval_s)
    top = "top:"
    for name, rate in rates.most_common():
        longer = f"{top}{',' if top[-1] != ':' else ''} {name} {format_rate(rate)}"
        if len(longer) > _MOST_COLUMNS:
            break
        top = longer
    return [top, *lines] if rates else lines


def table_lines(disks: Sequence[LiveDisk], elapsed_s: float, *, most: int) -> list[str]:
    """Return the table, at most 79 columns wide, with a number of disks at most.

    Disks of hosts that do not answer come first, then the busiest disks.
    """
    present = [disk for disk in disks if not disk.problem]
    dirty = {disk.host: disk.rates.get("dirty_bytes", math.nan) for disk in present}
    unwritten = format_capacity(math.fsum(dirty.values()))
    head = f"{'disk':<{_NAME}}" + "".join(
        f" {name:>{width}}" for name, width in zip(_HEADS, _WIDTHS, strict=True)
    )
    known = [disk.rates for disk in present if disk.rates]
    title = f"{total_line(known, elapsed_s)}, dirty pages {unwritten}"
    several = len({disk.host for disk in disks}) > 1
    ordered = sorted(
        disks, key=lambda disk: (not disk.problem, -disk.rates.get("active_percent", -1.0))
    )
    rows = [_disk_row(disk, several=several) for disk in ordered[:most]]
    rows += [f"and {len(ordered) - most} more disks, less busy"] if len(ordered) > most else []
    return [title, head, *rows]


def _disk_row(disk: LiveDisk, *, several: bool) -> str:
    name = printable(f"{disk.host}:{disk.device}" if several else disk.device)
    start = f"{name if len(name) <= _NAME else '…' + name[1 - _NAME :]:<{_NAME}}"
    if disk.problem:
        away_s = round(time.monotonic() - disk.seen_s)
        since = f" (for {format_duration(away_s)})" if disk.seen_s else ""
        return f"{start} {printable(disk.problem)}"[: _MOST_COLUMNS - len(since)] + since
    if not disk.rates:
        return f"{start} waiting for the second sample"
    rates, depth = disk.rates, disk.rates["queue_depth"]
    cells = (
        *(format_count(rates[f"{way}_iops"]) for way in ("read", "write")),
        *(f"{rates[f'{way}_bw_bytes_per_s'] / 1e6:.4g}"[:5] for way in ("read", "write")),
        *(_kibibytes(rates[f"{way}_request_bytes"]) for way in ("read", "write")),
        *(_milliseconds(rates[f"{way}_lat_s"]) for way in ("read", "write")),
        f"{depth:.0f}" if depth >= 100 else f"{depth:.1f}",
        f"{rates['active_percent']:.0f}",
    )
    return start + "".join(f" {cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


def _kibibytes(size_bytes: float) -> str:
    return "-" if math.isnan(size_bytes) else format_size(1024 * round(size_bytes / 1024))


def _milliseconds(seconds: float) -> str:
    milliseconds = 1000 * seconds
    if math.isnan(seconds):
        return "-"
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"
