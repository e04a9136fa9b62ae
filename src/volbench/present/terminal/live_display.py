"""Progress of a campaign on a terminal: bars, above them the lines that stay."""

from __future__ import annotations

import time
from threading import Lock
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from volbench.model.campaign.event import Event, RunStarted
from volbench.present.formatting import printable
from volbench.present.terminal.clients_table import Row, live_table
from volbench.present.terminal.progress import Active, Clock, Tally
from volbench.present.terminal.progress_lines import lasting_line
from volbench.units import format_count, format_duration, format_latency, format_rate

_UNKNOWN = "-"
_STATE_WORDS = {
    "paused": "idle time before the run",
    "layout": "laying out the file",
    "waiting": "waiting for its start",
    "ramp": "ramping up",
    "run": "running",
}
_FEW = 4
"""More runs than these at once are rows of a table, not bars."""
_OTHER_LINES = 6
"""Lines of the screen that are not the table's."""


class LiveProgress:
    """Bars on a terminal: one for the campaign, one for each run under way.

    Args:
        stream: the terminal, usually stderr.
        clock: seconds that only go up.
        console: a console to draw on instead of one made for the stream.
    """

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

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away; the lines above them stay."""
        self._live.stop()

    def __call__(self, event: Event, /) -> None:
        """Take one event; what changes often is drawn a few times a second, whoever reports it."""
        with self._lock:
            line = lasting_line(event, self._tally)
            self._tally.note(event)
        if line is not None:
            self._console.print(Text.assemble(*line), soft_wrap=True)
        elif isinstance(event, RunStarted):
            self._live.refresh()

    def draw(self) -> RenderableType:
        """Return what stands at the bottom of the screen now."""
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
            return Group(
                bars, live_table([_row(tally, run_id) for run_id in tally.in_order()], most=most)
            )
        rates: list[RenderableType] = []
        for run_id, seen in tally.active.items():
            total_s = tally.total_s(run_id)
            elapsed_s = tally.elapsed_s(run_id)
            bar = _bar(elapsed_s, total_s)
            bars.add_row(Text(printable(run_id)), bar, _run_words(elapsed_s, total_s))
            rates.append(_rates(seen, alone=len(tally.active) == 1))
        return Group(bars, *rates)


def _row(tally: Tally, run_id: str) -> Row:
    """Return a run under way as a row of the table."""
    seen, total_s = tally.active[run_id], tally.total_s(run_id)
    left_s = None if total_s is None else max(0.0, total_s - tally.elapsed_s(run_id))
    state = _STATE_WORDS.get(seen.progress.state, seen.progress.state)
    return Row(seen.run, state, seen.progress, left_s, seen.progress.silent_s)


def _bar(done: float, total: float | None) -> RenderableType:
    """Return a bar; without a known end it moves to and fro."""
    return ProgressBar(total=total, completed=min(done, total or done), pulse=total is None)


def _campaign_words(tally: Tally) -> Text:
    words = Text(f"{tally.ended}/{tally.total} runs")
    if tally.failed:
        words.append(f", {tally.failed} failed", style="bold red")
    left_s = tally.left_s()
    most = "at most " if tally.is_most and left_s is not None else ""
    words.append(f", {most}{_UNKNOWN if left_s is None else format_duration(left_s)} left")
    return words


def _run_words(elapsed_s: float, total_s: float | None) -> Text:
    length = _UNKNOWN if total_s is None else format_duration(total_s)
    return Text(f"{format_duration(int(elapsed_s))} of {length}")


def _rates(seen: Active, *, alone: bool) -> Text:
    """Return state, rates and latency of a run; zero is said as zero, unknown as a dash."""
    progress = seen.progress
    parts = [_STATE_WORDS.get(progress.state, progress.state)]
    directions = (
        ("read", progress.read_iops, progress.read_bw_bytes_per_s),
        ("write", progress.write_iops, progress.write_bw_bytes_per_s),
        ("trim", progress.trim_iops, progress.trim_bw_bytes_per_s),
    )
    reported = [part for part in directions if part[1] is not None or part[2] is not None]
    busy = [part for part in reported if part[1] or part[2]] or reported[:1]
    for name, iops, bw_bytes_per_s in busy:
        label = f"{name} " if any(part[1] or part[2] for part in reported) else ""
        count = _UNKNOWN if iops is None else format_count(iops)
        rate = _UNKNOWN if bw_bytes_per_s is None else format_rate(bw_bytes_per_s)
        parts.append(f"{label}{count} IOPS {rate}")
    if not reported:
        parts.append(f"{_UNKNOWN} IOPS")
    if progress.lat_mean_s is not None:
        parts.append(f"device {format_latency(progress.lat_mean_s)}")
    if progress.note:
        parts.append(progress.note)
    name = "" if alone else f"{printable(seen.run.id)}: "
    return Text("  " + name + "  ".join(parts), style="cyan", no_wrap=True, overflow="ellipsis")
