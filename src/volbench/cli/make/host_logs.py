"""Logs of a campaign by host: ``hosts/NAME.log`` in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
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
from volbench.store.journal import utc_now
from volbench.store.small_files import read_text
from volbench.units import format_duration

if TYPE_CHECKING:
    from volbench.store.layout import Layout

_MAX_STDERR_LINES = 50

Line = tuple[str, str]  # A host and what concerns it


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
                yield event.host, f"no answer for {format_duration(round(event.silent_s))}"
            case HostBack():
                silent = format_duration(round(event.silent_s))
                yield event.host, f"answers again after {silent}"

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
