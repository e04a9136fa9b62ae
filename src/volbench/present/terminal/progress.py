"""Progress of a campaign from its events: counts, the remaining time, and lines that stay."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median_low

from volbench.model.campaign.event import (
    CampaignEnded,
    CampaignStarted,
    Event,
    HostBack,
    HostSilent,
    Notice,
    Progress,
    RunEnded,
    RunProgress,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import Extent, Run, RunState
from volbench.model.profile.profile_model import Start
from volbench.present.formatting import first_line, printable
from volbench.units import counted_noun, format_count, format_duration, format_rate

Clock = Callable[[], float]
# Extents and runs that the pace is taken from: the first blocks of a volume say little of its last.
# Noticed by: tests/present/terminal/test_live_display.py
_REMEMBERED = 4
PASSING = re.compile(r"\d+ of \d+ runs? ended, |\[\d+/\d+\] started ")  # lines that bars replace
_LATE_S = 5.0  # after its expected end, when the time left of a run is unknown
_STATE_STYLES = {RunState.FINISHED: "green", RunState.FAILED: "bold red"}


@dataclass
class Pace:
    """Bytes and seconds of the last extents, by direction."""

    seen: dict[str, deque[tuple[int, float]]] = field(default_factory=dict)

    def note(self, extent: Extent, seconds: float) -> None:
        """Take an extent into account that was finished."""
        measured = self.seen.setdefault(extent.direction, deque(maxlen=_REMEMBERED))
        measured.append((extent.size_bytes, seconds))

    def expected_s(self, extent: Extent) -> float | None:
        """Return the expected duration of an extent, if need be from another direction's pace.

        It is None when nothing was finished yet.
        """
        measured = self.seen.get(extent.direction) or next(iter(self.seen.values()), None)
        if not measured:
            return None
        seconds = sum(took_s for _, took_s in measured)
        return extent.size_bytes * seconds / sum(size_bytes for size_bytes, _ in measured)


@dataclass
class Active:
    """A run in progress, as last reported."""

    run: Run
    started_s: float
    expected_s: float | None
    progress: Progress = field(default_factory=lambda: Progress(elapsed_s=0.0))
    heard_s: float | None = None


@dataclass
class Tally:
    """Counts and remaining time after the events so far."""

    clock: Clock = time.monotonic  # monotonic, in seconds
    total: int = 0  # runs to do
    ended: int = 0  # runs that ended, in whatever state
    failed: int = 0  # those of them that did not finish, other than by Ctrl-C
    is_most: bool = False  # whether some runs may not be needed
    # id of each run, in the order of the plan, to its step; its own id where it is alone
    steps: dict[str, int | str] = field(default_factory=dict)
    active: dict[str, Active] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)
    waiting_s: dict[str, float | None] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    # what the last timed runs took beyond what was expected, negative where they ended early
    late_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    topics: Counter[str] = field(default_factory=Counter)  # of notices

    def note(self, event: Event) -> None:
        """Take an event into account."""
        if isinstance(event, CampaignStarted):
            self.total = len(event.pending)
            self.is_most = bool(event.campaign.rounds or event.campaign.repeats)
            self.steps = {
                run.id: run.id if run.start is Start.SEQUENTIAL else run.step or run.id
                for run in event.pending
            }
            self.waiting_s = {run.id: event.expected_s.get(run.id) for run in event.pending}
            self.extents = {run.id: run.extent for run in event.pending if run.extent}
        elif isinstance(event, RunStarted):
            expected_s = event.expected_s or self.waiting_s.get(event.run.id)
            self.total += event.run.id not in self.waiting_s  # it is repeated
            self.waiting_s.pop(event.run.id, None)
            self.active[event.run.id] = Active(event.run, self.clock(), expected_s)
        elif isinstance(event, RunProgress) and event.run.id in self.active:
            seen = self.active[event.run.id]
            seen.progress, seen.heard_s = event.progress, self.clock()
        elif isinstance(event, RunsNotNeeded):
            self.total -= len(event.runs)
            for run in event.runs:
                self.waiting_s.pop(run.id, None)
        elif isinstance(event, Notice):
            self.topics[event.topic] += bool(event.topic)
        elif isinstance(event, RunEnded):
            seen_last = self.active.pop(event.run.id, None)
            if seen_last and event.state is RunState.FINISHED:
                self._learn(seen_last)
            self.waiting_s.pop(event.run.id, None)
            self.ended += 1
            self.failed += event.state not in {RunState.FINISHED, RunState.INTERRUPTED}

    def _learn(self, seen: Active) -> None:
        """Take the time of a run that finished into account."""
        seconds = self.clock() - seen.started_s
        if seen.run.extent:
            self.pace.note(seen.run.extent, seconds)
        elif seen.expected_s:
            self.late_s.append(seconds - seen.expected_s)

    def place(self, run: Run) -> int:
        """Return the place of a run among those to do, counted from 1."""
        return self.ended + list(self.active).index(run.id) + 1

    def elapsed_s(self, run_id: str) -> float:
        """Return the elapsed time of a run, extrapolated between reports."""
        seen = self.active[run_id]
        if seen.heard_s is not None:
            return seen.progress.elapsed_s + self.clock() - seen.heard_s
        return self.clock() - seen.started_s

    def silent_s(self, run_id: str) -> float:
        """Return the time since a run or its host was last heard of, also between reports."""
        seen = self.active[run_id]
        is_over = seen.progress.state == "ended"  # and waits for the others of its step
        known_s = self.clock() if seen.heard_s is None or is_over else seen.heard_s
        return seen.progress.silent_s + self.clock() - known_s

    def total_s(self, run_id: str) -> float | None:
        """Return the expected duration of a run; None if it is limited by size only."""
        seen = self.active[run_id]
        return seen.progress.total_s or seen.expected_s or self._by_pace(run_id)

    def run_left_s(self, run_id: str) -> float | None:
        """Return the time left for a run under way; None when its length is not known."""
        total_s, elapsed_s = self.total_s(run_id), self.elapsed_s(run_id)
        is_unknown = total_s is None or elapsed_s > total_s + _LATE_S
        return None if is_unknown else max(0.0, (total_s or 0.0) - elapsed_s)

    def left_s(self) -> float | None:
        """Return the time left; None when the length of a run is not known.

        Runs of a step are concurrent, so a step takes as long as its longest run.
        """
        left_s = {
            run_id: self._expected_s(run_id, known_s) for run_id, known_s in self.waiting_s.items()
        }
        left_s |= {run_id: self.run_left_s(run_id) for run_id in self.active}
        longest: dict[int | str, float] = {}
        for run_id, seconds in left_s.items():
            if seconds is None:
                return None
            step = self.steps.get(run_id, run_id)
            longest[step] = max(longest.get(step, 0.0), seconds)
        return sum(longest.values())

    def in_order(self) -> list[str]:
        """Return the runs under way in the order of the plan."""
        places = {run_id: position for position, run_id in enumerate(self.steps)}
        return sorted(self.active, key=lambda run_id: places.get(run_id, len(places)))

    def _expected_s(self, run_id: str, known_s: float | None) -> float | None:
        """Return the expected duration of a run, if it is as late as the last ones."""
        late_s = median_low(self.late_s or [0.0])  # one was long if the controller was stopped
        return max(0.0, known_s + late_s) if known_s else self._by_pace(run_id)

    def _by_pace(self, run_id: str) -> float | None:
        """Return the expected duration of a warm-up extent, from earlier extents."""
        extent = self.extents.get(run_id)
        return None if extent is None else self.pace.expected_s(extent)

    def done(self) -> float:
        """Return the number of completed runs, with the completed fraction of active ones."""
        shares = (
            min(1.0, self.elapsed_s(run_id) / total_s)
            for run_id in self.active
            if (total_s := self.total_s(run_id))
        )
        return self.ended + sum(shares)


# Parts of a line: text, and its style in rich's words; empty for none
Line = tuple[tuple[str, str], ...]


def lasting_line(event: Event, tally: Tally) -> Line | None:
    """Return the line of an event that stays; None when it has none."""
    if isinstance(event, RunEnded):
        return _ended_line(event, tally)
    text = _text(event, tally)
    return None if text is None else plain_line(text)


def _text(event: Event, tally: Tally) -> str | None:
    match event:
        case RunsNotNeeded():
            count = len(event.runs)
            what = f"{counted_noun(count, 'run')} {'is' if count == 1 else 'are'}"
            return f"{what} not needed: {event.reason}"
        case Notice() if not tally.topics[event.topic]:
            return f"note: {event.message}"
        case HostSilent():
            silent = f"{format_duration(round(event.silent_s))} {event.reason}".rstrip()
            return f"{event.host} has not answered for {silent}; its runs may continue"
        case HostBack():
            return f"{event.host} answers again after {format_duration(round(event.silent_s))}"
        case CampaignEnded():
            repeated = (f"{topic} ({n} runs)" for topic, n in tally.topics.items() if n > 1)
            return "; ".join([_counts(event), *repeated])
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
    elif event.rates is not None and any(event.rates):
        rest += f": {format_count(event.rates[0])} IOPS, {format_rate(event.rates[1])}"
    return (
        (f"[{tally.ended + 1}/{max(tally.total, tally.ended + 1)}] ", ""),
        (event.state.value, _STATE_STYLES.get(event.state, "yellow")),
        (rest, ""),
    )
