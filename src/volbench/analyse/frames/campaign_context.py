"""A campaign's Runs side by side: views enter, judgements that several readers need leave, once.

Verdicts and Findings stand on the same judgements, so that they can't contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from volbench.analyse.bottleneck.explain import Explanation, explain
from volbench.analyse.frames.concurrent_load import Crowd, crowd_of
from volbench.analyse.frames.observed import directions, rate_per_s
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.frames.workload_spec import asked_of
from volbench.analyse.time.steady_state import (
    State,
    Steadiness,
    judge_last,
    judge_steady,
    steady_end,
)
from volbench.model.campaign.target import VolumeKind
from volbench.model.profile.profile_model import Phase


@dataclass(frozen=True)
class Context:
    """What is known of all Runs of a campaign.

    Attributes:
        views: every Run of the campaign that has ended, in the order of the plan.
    """

    views: tuple[RunView, ...]
    _steady: dict[tuple[str, str], Steadiness] = field(default_factory=dict, repr=False)
    _explained: dict[str, tuple[Explanation, ...]] = field(default_factory=dict, repr=False)
    _crowds: dict[tuple[str, int, str], Crowd] = field(default_factory=dict, repr=False)

    def steadiness(self, view: RunView, direction: str) -> Steadiness:
        """Return whether the IOPS of one direction of a Run are steady, judged once."""
        key = view.run.id, direction
        if key not in self._steady:
            t_s, iops = rate_per_s(view, "iops", direction=direction)
            self._steady[key] = judge_steady(t_s, iops)
        return self._steady[key]

    def steady_end(self, view: RunView, direction: str) -> Steadiness | None:
        """Return the steady stretch at the end of a Run; None where there is none.

        A Run that was to go on until it is steady ended when its last window was.
        """
        t_s, iops = rate_per_s(view, "iops", direction=direction)
        whole, until = self.steadiness(view, direction), view.run.until
        if until is not None and whole.state is not State.STEADY:
            last = judge_last(t_s, iops, window_s=until.window_s, block_s=until.block_s)
            if last.state is State.STEADY:
                return last
        return steady_end(t_s, iops, whole)

    def crowd(self, view: RunView) -> Crowd | None:
        """Return all that worked on a Run's volume in its step; None where it was alone."""
        if view.run.volume.kind is VolumeKind.UNKNOWN:
            return None
        key = _place_of(view)
        beside = [one for one in self.views if view.run.step and _place_of(one) == key]
        if len(beside) < 2:
            return None
        if key not in self._crowds:
            self._crowds[key] = crowd_of(beside)
        return self._crowds[key]

    def before(self, view: RunView) -> list[RunView]:
        """Return the Runs on the same volume that came before a Run, finished ones only."""
        if view.run.volume.kind is VolumeKind.UNKNOWN:
            return []
        place = next(n for n, other in enumerate(self.views) if other.run.id == view.run.id)
        return [
            other
            for other in self.views[:place]
            if other.run.host == view.run.host
            and other.run.volume == view.run.volume
            and other.is_finished
        ]

    def explanations(self, view: RunView) -> tuple[Explanation, ...]:
        """Return what explains the rates of a Run, all its directions, judged once."""
        if view.run.id not in self._explained:
            others = self._comparable(view)
            self._explained[view.run.id] = tuple(
                one
                for direction in directions(view)
                for one in explain(view, direction, others=others)
            )
        return self._explained[view.run.id]

    def _comparable(self, view: RunView) -> list[RunView]:
        """Return the other jobs on the same volume that are nearest in depth and block size.

        Each costs a search for change points, so that all of a sweep would be too many.
        """
        mine = _shape(view)
        shapes = [(other, _shape(other)) for other in self.views if _is_alike(view, other)]
        deeper = [(one[0], other) for other, one in shapes if one[1] == mine[1] and one > mine]
        flatter = [(-one[0], other) for other, one in shapes if one[1] == mine[1] and one < mine]
        sized = [(abs(one[0] - mine[0]), other) for other, one in shapes if one[1] != mine[1]]
        return [
            min(group, key=lambda pair: pair[0])[1] for group in (deeper, flatter, sized) if group
        ]


def _place_of(view: RunView) -> tuple[str, int, str]:
    return view.run.host, view.run.step, view.run.volume.target


def _shape(view: RunView) -> tuple[int, int]:
    """Return depth and block size of what a Run asked for."""
    asked = asked_of(view.run)
    return sum(one.depth * one.clones for one in asked), max(one.block_bytes for one in asked)


def _is_alike(view: RunView, other: RunView) -> bool:
    """Tell whether two Runs are of different jobs on the same volume."""
    return (
        other.run.volume == view.run.volume
        and other.run.volume.kind is not VolumeKind.UNKNOWN
        and other.run.host == view.run.host
        and other.run.phase is Phase.MEASURED
        and other.run.job != view.run.job
        and other.is_finished
        and other.run.repeat == view.run.repeat
    )
