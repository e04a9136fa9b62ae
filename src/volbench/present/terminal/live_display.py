"""Progress of a campaign: bars on a terminal, or plain lines elsewhere.

Both listeners write to the stream they are given and to nothing else; data never goes there.
"""

from __future__ import annotations

import time
from threading import Lock
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from volbench.model.campaign.event import (
    CampaignEnded,
    Event,
    Notice,
    RunEnded,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import RunState
from volbench.present.formatting import printable
from volbench.present.terminal.clients_table import Row, live_table
from volbench.present.terminal.outcome import first_line
from volbench.present.terminal.progress import Active, Clock, Tally
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
_STATE_STYLES = {RunState.FINISHED: "green", RunState.FAILED: "bold red"}


class CampaignListener(Protocol):
    """A listener that is opened before the first event and closed after the last."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the screen in order, whatever happened."""

    def __call__(self, event: Event, /) -> None:
        """Show one event."""


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
            line = _line(event, self._tally)
            self._tally.note(event)
        if line is not None:
            self._console.print(line, soft_wrap=True)
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


class PlainProgress:
    """A line when a run starts and one when it ends, for logs and pipes.

    Args:
        stream: usually stderr.
        clock: seconds that only go up.
    """

    def __init__(self, stream: TextIO, *, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._tally = Tally(clock)

    def __enter__(self) -> Self:
        """Do nothing: there is no screen to prepare."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do nothing: every line is already out."""

    def __call__(self, event: Event, /) -> None:
        """Write the line of one event, if it has one."""
        line = _line(event, self._tally)
        self._tally.note(event)
        if isinstance(event, RunStarted):
            expected_s = self._tally.total_s(event.run.id)
            word = "about" if event.run.until is None else "at most"
            length = f", {word} {format_duration(expected_s)}" if expected_s else ""
            place = f"[{self._tally.place(event.run)}/{self._tally.total}]"
            line = Text(printable(f"{place} started {event.run.id}{length}"))
        if line is not None:
            self._stream.write(line.plain + "\n")
            self._stream.flush()


def listener_for(stream: TextIO) -> CampaignListener:
    """Return bars for a terminal that can draw them, plain lines for everything else."""
    if stream.isatty() and not Console(file=stream).is_dumb_terminal:
        return LiveProgress(stream)
    return PlainProgress(stream)


def _line(event: Event, tally: Tally) -> Text | None:
    """Return the lasting line of an event; None when it has none. The tally is from before it."""
    if isinstance(event, RunEnded):
        return _ended_line(event, tally)
    if isinstance(event, RunsNotNeeded):
        count = len(event.runs)
        what = "1 run is" if count == 1 else f"{count} runs are"
        return Text(printable(f"{what} not needed: {event.reason}"))
    if isinstance(event, Notice):
        return Text(printable(f"note: {event.message}"))
    if isinstance(event, CampaignEnded):
        counts = [f"{len(event.finished)} finished"]
        counts += [f"{len(event.failed)} failed"] if event.failed else []
        counts += [f"{len(event.not_needed)} not needed"] if event.not_needed else []
        counts += [f"{len(event.left)} not run"] if event.left else []
        return Text(f"campaign ended: {', '.join(counts)}")
    return None


def _ended_line(event: RunEnded, tally: Tally) -> Text:
    """Return how a run ended, after how long, and why."""
    line = Text(f"[{tally.ended + 1}/{max(tally.total, tally.ended + 1)}] ")
    line.append(event.state.value, style=_STATE_STYLES.get(event.state, "yellow"))
    line.append(" " + printable(event.run.id))
    if event.run.id in tally.active:
        seconds = tally.clock() - tally.active[event.run.id].started_s
        line.append(f" after {format_duration(round(seconds))}")
    if event.state is not RunState.FINISHED:
        line.append(": " + printable(first_line(event.reason)))
    return line


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
