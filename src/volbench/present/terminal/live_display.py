"""Progress of a campaign on a terminal: bars or a table of clients, above them lines that stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from volbench.model.campaign.event import Event, RunStarted
from volbench.present.formatting import printable
from volbench.present.terminal.progress import PASSING, Active, Clock, Tally, lasting_line
from volbench.units import counted_noun, format_count, format_duration, format_rate

_UNKNOWN = "-"
_STATE_WORDS = {
    "paused": "idle time before the run",
    "layout": "laying out the file",
    "waiting": "waiting for its start",
    "ramp": "ramping up",
    "run": "running",
}
_HEADINGS = ("client", "run", "state", "IOPS", "bandwidth", "left", "heard")
SILENT_S = 5.0  # A client is polled every second. Noticed by: test_live_display.py
_FEW = 4  # More runs than these at once are rows of a table, not bars
_OTHER_LINES = 6  # Lines of the screen that are not the table's


class LiveProgress:
    """Bars on a terminal: one for the campaign, one for each run under way."""

    def __init__(
        self, stream: TextIO, *, clock: Clock = time.monotonic, console: Console | None = None
    ) -> None:
        self._tally = Tally(clock)
        self._lock = Lock()
        self._console = console or Console(file=stream)
        self._live = Live(
            console=self._console,
            get_renderable=self.draw,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @contextmanager
    def drawing(self) -> Iterator[Self]:
        """Draw bars inside the block, and take them away after it; the lines above them stay."""
        with self._live:
            yield self

    def __call__(self, event: Event, /) -> None:
        """Handle one event; the screen is redrawn a few times a second."""
        with self._lock:
            line = lasting_line(event, self._tally)
            self._tally.note(event)
        if line is not None:
            self._console.print(Text.assemble(*line), soft_wrap=True)
        elif isinstance(event, RunStarted):
            self._live.refresh()

    def follow(self, events: Iterable[Event], log: str) -> None:
        """Handle events of another process, and print what its log says beside its progress."""
        with self._lock:
            for event in events:
                self._tally.note(event)
        lines = [printable(line) for line in log.splitlines() if not PASSING.match(line)]
        if lines:
            self._console.print(Text("\n".join(lines)), soft_wrap=True)

    def draw(self) -> RenderableType:
        """Return the current bottom part of the screen."""
        with self._lock:
            return self._drawn(self._tally)

    def _drawn(self, tally: Tally) -> RenderableType:
        if not tally.total:
            return Text("")
        bars = Table.grid(padding=(0, 1), expand=True)
        bars.add_column(no_wrap=True, overflow="ellipsis", max_width=28)
        bars.add_column(ratio=1, min_width=8)
        bars.add_column(no_wrap=True, justify="right")
        bars.add_row("campaign", _bar(tally.done(), tally.total), _campaign_words(tally))
        if len(tally.active) > _FEW:
            most = max(_FEW, self._console.height - _OTHER_LINES)
            return Group(bars, _clients_table(tally, most=most))
        rates: list[RenderableType] = []
        for run_id, seen in tally.active.items():
            total_s = tally.total_s(run_id)
            elapsed_s = tally.elapsed_s(run_id)
            bar = _bar(elapsed_s, total_s)
            times = f"{format_duration(int(elapsed_s))} of {_known(total_s, format_duration)}"
            bars.add_row(Text(printable(run_id)), bar, Text(times))
            rates.append(_rates(seen, tally.silent_s(run_id), alone=len(tally.active) == 1))
        return Group(bars, *rates)


def _bar(done: float, total: float | None) -> RenderableType:
    """Return a bar; without a known end it pulses."""
    return ProgressBar(total=total, completed=min(done, total or done), pulse=total is None)


def _campaign_words(tally: Tally) -> Text:
    text = Text(f"{tally.ended}/{counted_noun(tally.total, 'run')}")
    if tally.failed:
        text.append(f", {tally.failed} failed", style="bold red")
    left_s = tally.left_s()
    most = "at most " if tally.is_most and left_s is not None else ""
    return text.append(f", {most}{_known(left_s, format_duration)} left")


def _rates(seen: Active, silent_s: float, *, alone: bool) -> Text:
    """Return state, rates and latency of a run; a dash means unknown."""
    progress = seen.progress
    parts = [_STATE_WORDS.get(progress.state, progress.state)]
    if silent_s >= SILENT_S:
        parts = [f"silent for {format_duration(int(silent_s))}, before:"]
    directions = (
        ("read", progress.read_iops, progress.read_bw_bytes_per_s),
        ("write", progress.write_iops, progress.write_bw_bytes_per_s),
        ("trim", progress.trim_iops, progress.trim_bw_bytes_per_s),
    )
    reported = [each for each in directions if each[1] is not None or each[2] is not None]
    busy = [each for each in reported if each[1] or each[2]] or reported[:1]
    for name, iops, bw_bytes_per_s in busy:
        label = f"{name} " if any(each[1] or each[2] for each in reported) else ""
        rate = _known(bw_bytes_per_s, format_rate)
        parts.append(f"{label}{_known(iops, format_count)} IOPS {rate}")
    if not reported:
        parts.append(f"{_UNKNOWN} IOPS")
    if progress.note:
        parts.append(progress.note)
    name = "" if alone else f"{printable(seen.run.id)}: "
    return Text("  " + name + "  ".join(parts), style="cyan", no_wrap=True, overflow="ellipsis")


def _clients_table(tally: Tally, *, most: int) -> Table:
    """Return a row for each run under way, silent ones first, as far as they fit."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        is_text = heading in {"client", "run", "state"}
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    silent_s = {run_id: tally.silent_s(run_id) for run_id in tally.in_order()}
    ordered = sorted(silent_s, key=lambda run_id: silent_s[run_id] < SILENT_S)
    for run_id in ordered[:most]:
        style = "yellow" if silent_s[run_id] >= SILENT_S else ""
        table.add_row(*_cells(tally, run_id), style=style)
    if len(ordered) > most:
        table.add_row(Text(f"and {len(ordered) - most} more"))
    return table


def _cells(tally: Tally, run_id: str) -> Iterator[Text]:
    run, progress = tally.active[run_id].run, tally.active[run_id].progress
    left_s, silent_s = tally.run_left_s(run_id), tally.silent_s(run_id)
    texts = (
        f"{run.host} {run.client}" if run.client else run.host,
        run.job,
        _STATE_WORDS.get(progress.state, progress.state),
        _known(progress.iops, format_count),
        _known(progress.bw_bytes_per_s, format_rate),
        _known(None if left_s is None else int(left_s), format_duration),
        f"{format_duration(int(silent_s))} ago" if silent_s >= SILENT_S else "now",
    )
    return (Text(printable(word)) for word in texts)


def _known(value: float | None, formatted: Callable[[float], str]) -> str:
    return _UNKNOWN if value is None else formatted(value)
