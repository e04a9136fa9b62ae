"""Progress of a campaign as plain lines, and the listener that suits a stream.

Listeners write to the stream they are given and to nothing else; data never goes there. Only bars
on a terminal need rich, so a campaign of a script or of CI does not wait for its import.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOBase
from typing import TYPE_CHECKING, TextIO

from volbench.model.campaign.event import Event, Listener, RunEnded, RunProgress, RunStarted
from volbench.model.campaign.planned_run import Run, RunState
from volbench.present.terminal.progress import Clock, Line, Tally, lasting_line, plain_line
from volbench.units import counted_noun, format_count, format_duration

if TYPE_CHECKING:
    from volbench.present.terminal.live_display import LiveProgress

_PROGRESS_S = 15.0  # Longest silence
_SILENT_S = 10.0  # Ten polls without a reply. Noticed by: test_live_display.py
_MAX_SILENT = 5
_ALL_STEPS = 20  # lines that a person reads; of more steps, one has a line in half a minute
_EVERY_S = 30.0


class PlainProgress:
    """A line when a step begins, if it is long, when it ends, and after 15 s without, for pipes."""

    def __init__(self, stream: TextIO | TextIOBase, *, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._tally = Tally(clock)
        self._wrote_s, self._began = clock(), 0  # the last line, and the last step
        self._rates: dict[int | str | None, list[tuple[float, float]]] = {}  # of each step

    def __call__(self, event: Event, /) -> None:
        """Write the line of one event, if it has one."""
        line = lasting_line(event, self._tally)
        self._tally.note(event)
        if isinstance(event, RunEnded) and line is not None:
            left_s, line = self._tally.left_s(), self._ended(event, line)
            left = f"; about {format_duration(round(left_s))} left" if left_s else ""
            line = None if line is None else (*line, (left, ""))
        elif isinstance(event, RunStarted):
            line = self._started(event.run)
        now_s = self._tally.clock()
        if isinstance(event, RunProgress) and now_s - self._wrote_s >= _PROGRESS_S:
            line = plain_line(_progress_words(self._tally))
        if line is not None:
            self._wrote_s = now_s
            self._stream.write("".join(text for text, _ in line) + "\n")
            self._stream.flush()

    def _started(self, run: Run) -> Line | None:
        is_first, self._began = not run.step or self._began != run.step, run.step
        expected_s = self._tally.total_s(run.id)
        if not is_first or not self._is_due() or (expected_s and expected_s < _PROGRESS_S):
            return None
        word = "about" if run.until is None else "at most"
        length = f", {word} {format_duration(expected_s)}" if expected_s else ""
        position = f"[{self._tally.place(run)}/{self._tally.total}]"
        return plain_line(f"{position} started {run.id}{length}")

    def _is_due(self) -> bool:
        is_few = len({*self._tally.steps.values()}) <= _ALL_STEPS
        return is_few or self._tally.clock() - self._wrote_s >= _EVERY_S

    def _ended(self, event: RunEnded, line: Line) -> Line | None:
        if event.state is not RunState.FINISHED:
            return line
        tally, step = self._tally, self._tally.steps.get(event.run.id)
        rates = self._rates.setdefault(step, [])
        rates.append(event.rates or (0.0, 0.0))
        others = (tally.steps.get(run_id) for run_id in (*tally.active, *tally.waiting_s))
        if step in others or not (self._is_due() or len(self._rates) == 1):
            return None
        low, high = (format_count(of(rate for rate, _ in rates)) for of in (min, max))
        words = f"; step {event.run.step}: {len(rates)} clients, {low} to {high} IOPS each"
        return (*line, (words, "")) if len(rates) > 1 else line


def _progress_words(tally: Tally) -> str:
    left_s = tally.left_s()
    left = f", about {format_duration(left_s)} left" if left_s and left_s >= 1 else ""
    silent = [
        f"{seen.run.host} silent for {format_duration(round(tally.silent_s(run_id)))}"
        for run_id, seen in tally.active.items()
        if tally.silent_s(run_id) >= _SILENT_S
    ]
    ended = f"{tally.ended} of {counted_noun(tally.total, 'run')} ended"
    return "; ".join([f"{ended}, {len(tally.active)} running{left}", *silent[:_MAX_SILENT]])


@contextmanager
def bars_for(stream: TextIO) -> Iterator[LiveProgress | None]:
    """Yield bars for a terminal that can draw them; None for everything else."""
    if stream.isatty():
        from rich.console import Console  # noqa: PLC0415 - slow to import, and for terminals only

        from volbench.present.terminal.live_display import LiveProgress  # noqa: PLC0415 - the same

        if not Console(file=stream).is_dumb_terminal:
            with LiveProgress(stream).drawing() as bars:
                yield bars
            return
    yield None


@contextmanager
def listener_for(stream: TextIO) -> Iterator[Listener]:
    """Yield bars for a terminal that can draw them, plain lines for everything else."""
    with bars_for(stream) as bars:
        yield bars or PlainProgress(stream)
