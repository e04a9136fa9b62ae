"""Lines of events that stay on the terminal and in logs, with styles for terminals."""

from __future__ import annotations

from volbench.model.campaign.event import (
    CampaignEnded,
    Event,
    HostBack,
    HostSilent,
    Notice,
    RunEnded,
    RunsNotNeeded,
)
from volbench.model.campaign.planned_run import RunState
from volbench.present.formatting import printable
from volbench.present.terminal.campaign_text import first_line
from volbench.present.terminal.progress import Tally
from volbench.units import format_duration

# Parts of a line: text, and its style in rich's words; empty for none
Line = tuple[tuple[str, str], ...]

_STATE_STYLES = {RunState.FINISHED: "green", RunState.FAILED: "bold red"}


def lasting_line(event: Event, tally: Tally) -> Line | None:
    """Return the line of an event that stays; None when it has none."""
    if isinstance(event, RunEnded):
        return _ended_line(event, tally)
    text = _text(event)
    return None if text is None else plain_line(text)


def _text(event: Event) -> str | None:
    match event:
        case RunsNotNeeded():
            count = len(event.runs)
            what = "1 run is" if count == 1 else f"{count} runs are"
            return f"{what} not needed: {event.reason}"
        case Notice():
            return f"note: {event.message}"
        case HostSilent():
            silent = format_duration(round(event.silent_s))
            return f"{event.host} has not answered for {silent}; its runs may continue"
        case HostBack():
            return f"{event.host} answers again after {format_duration(round(event.silent_s))}"
        case CampaignEnded():
            return _counts(event)
    return None


def _counts(event: CampaignEnded) -> str:
    counts = [f"{len(event.finished)} finished"]
    counts += [f"{len(event.failed)} failed"] if event.failed else []
    counts += [f"{len(event.not_needed)} not needed"] if event.not_needed else []
    counts += [f"{len(event.left)} not run"] if event.left else []
    return f"campaign ended: {', '.join(counts)}"


def plain_line(text: str) -> Line:
    """Return a line without style, with control characters escaped."""
    return ((printable(text), ""),)


def _ended_line(event: RunEnded, tally: Tally) -> Line:
    """Return how a run ended, after how long, and why."""
    rest = " " + printable(event.run.id)
    if event.run.id in tally.active:
        seconds = tally.clock() - tally.active[event.run.id].started_s
        rest += f" after {format_duration(round(seconds))}"
    if event.state is not RunState.FINISHED:
        rest += ": " + printable(first_line(event.reason))
    return (
        (f"[{tally.ended + 1}/{max(tally.total, tally.ended + 1)}] ", ""),
        (event.state.value, _STATE_STYLES.get(event.state, "yellow")),
        (rest, ""),
    )
