"""Logs of a controller: its own, and one for each host, in the campaign folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import TextIOBase
from typing import TYPE_CHECKING

from volbench.model.campaign.event import (
    CampaignStarted,
    Event,
    HostBack,
    HostSilent,
    Notice,
    RunEnded,
    RunProgress,
    RunStarted,
)
from volbench.model.campaign.host import LOCAL
from volbench.present.formatting import printable
from volbench.present.terminal.listeners import PlainProgress, listener_for
from volbench.store.atomic_files import read_text, unwritable
from volbench.store.journal import utc_now
from volbench.units import format_duration

if TYPE_CHECKING:
    from volbench.model.campaign.event import Listener
    from volbench.present.terminal.event_records import EventStream
    from volbench.store.layout import Layout

_MAX_STDERR_LINES = 50  # Of a run, in the log of its host

Line = tuple[str, str]  # A host, and a text about it


class LoggedListener:
    """Listener that writes each event to logs, and to the terminal while one is attached."""

    def __init__(
        self,
        log: int,
        to_logs: Sequence[Listener],
        to_terminal: Sequence[Listener],
        complete: Callable[[str], str],
    ) -> None:
        self._log = log
        self._to_logs = to_logs
        self._to_terminal = to_terminal
        self._complete = complete

    def __call__(self, event: Event, /) -> None:
        """Handle one event; commands in notices are completed."""
        if isinstance(event, Notice):
            event = replace(event, message=self._complete(event.message))
        for listener in (*self._to_logs, *self._to_terminal):
            try:
                listener(event)
            except BrokenPipeError:  # nobody reads the progress any more; see `end_quietly`
                self._to_terminal = [each for each in self._to_terminal if each is not listener]
                os.dup2(self._log, 2)

    def detach(self) -> None:
        """Detach from the terminal and redirect all output to the log."""
        self._to_terminal = ()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, number in ((nothing, 0), (self._log, 1), (self._log, 2)):
            os.dup2(source, number)
        os.close(nothing)


class _LogStream(TextIOBase):
    """Text stream to the log; on a full disk only log lines are lost."""

    def __init__(self, log: int) -> None:
        self._log = log

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            os.write(self._log, text.encode())
        return len(text)


@contextmanager
def logged_listener(
    layout: Layout,
    *,
    events: EventStream | None = None,
    more: Sequence[Listener] = (),
    complete: Callable[[str], str] = str,
) -> Iterator[LoggedListener]:
    """Yield the listener of a controller."""
    log = open_log(layout)
    stream = _LogStream(log)
    try:
        with listener_for(sys.stderr) as to_terminal:
            listeners = [] if _is_same_file(log, sys.stderr) else [to_terminal]
            listeners += [] if events is None else [events]
            yield LoggedListener(
                log, [PlainProgress(stream), HostLogs(layout), *more], listeners, complete
            )
    finally:
        os.close(log)


def open_log(layout: Layout) -> int:
    """Return a file descriptor that appends to the log of a controller."""
    try:
        return os.open(layout.controller_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise unwritable(layout.controller_log, error) from error


def _is_same_file(log: int, stream: object) -> bool:
    """Return whether a stream already writes to the log, as in a background controller."""
    try:
        number = stream.fileno()  # type: ignore[attr-defined]  # streams of tests have none
    except (AttributeError, OSError):
        return False
    return os.path.samestat(os.fstat(log), os.fstat(number))


class HostLogs:
    """Listener that writes events to the log of the host they concern.

    Campaigns without an inventory have none. On a full disk only log lines are lost.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._states: dict[str, str] = {}

    def __call__(self, event: Event, /) -> None:
        """Write the lines of one event."""
        for host, text in self._lines(event):
            if host not in {"", LOCAL}:
                self._append(host, text)

    def _append(self, host: str, text: str) -> None:
        path = self._layout.host_log(host)
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as log:
                log.write(f"{utc_now()} {printable(text)}\n")

    def _lines(self, event: Event) -> Iterator[Line]:
        match event:
            case CampaignStarted():
                yield from _begin_lines(event)
            case RunStarted():
                yield event.run.host, f"{event.run.id} begins"
            case RunProgress():
                state = event.progress.state
                if self._states.get(event.run.id) != state:
                    self._states[event.run.id] = state
                    yield event.run.host, f"{event.run.id} is in state {state}"
            case RunEnded():
                yield from self._end_lines(event)
            case Notice():
                yield event.host, event.message
            case HostSilent():
                silent = format_duration(round(event.silent_s))
                yield event.host, f"no answer for {silent} {event.reason}".rstrip()
            case HostBack():
                yield event.host, f"answers again after {format_duration(round(event.silent_s))}"

    def _end_lines(self, event: RunEnded) -> Iterator[Line]:
        run = event.run
        reason = f": {event.reason}" if event.reason else ""
        yield run.host, f"{run.id} {event.state.value}{reason}"
        stderr = read_text(self._layout.run(run.id).stderr).splitlines()
        for line in stderr[:_MAX_STDERR_LINES]:
            yield run.host, f"{run.id} stderr: {line}"


def _begin_lines(event: CampaignStarted) -> Iterator[Line]:
    for host in event.campaign.hosts:
        count = sum(run.host == host.name for run in event.pending)
        yield host.name, f"campaign {event.campaign.name}; runs to do here: {count}"
    for absent in event.campaign.absent:
        yield absent.host, f"left out: {absent.reason}"
