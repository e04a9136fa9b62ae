"""Runs of a campaign side by side, with judgements that verdicts and findings share.

Each judgement is made once, so that verdicts and findings cannot contradict each other. Runs are
grouped once as well: no function here looks through all runs for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

import numpy as np
import pandas as pd

from volbench.analyse.bottleneck.bottleneck import explain
from volbench.analyse.bottleneck.lasting_falls import is_near
from volbench.analyse.bottleneck.sustained_level import Level, sustained_level
from volbench.analyse.bottleneck.volume_context import Earlier
from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.disturbed import clean_rate_per_s, disturbed
from volbench.analyse.frames.resample import Floats, on_clock, spread_rows
from volbench.analyse.frames.run_options import members_of, rows_with_options
from volbench.analyse.frames.run_view import RunView, directions, rate_per_s
from volbench.analyse.time.change_points import Change, place_in_gaps
from volbench.analyse.time.rate_swings import Swing, real_jumps, swing_of, without_swing
from volbench.analyse.time.run_rates import least_level_s, rates_of
from volbench.analyse.time.steady_state import (
    MAX_DRIFT,
    Steadiness,
    judge_last,
    judge_steady,
    steady_end,
)
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.model.frames.columns import Row
from volbench.model.profile.profile_model import Phase, Start, Tool
from volbench.model.profile.profile_settings import Limits
from volbench.model.results.finding import Cause, Explanation
from volbench.model.results.steadiness import State

Shape = tuple[int, int]  # Queue depth and block size of a run
# Periods from which the mean of a run that swings is well known: it is off by one in 500 at most.
# Noticed by: tests/analyse/findings/test_steady.py::test_a_rate_that_alternates_is_not_steady
_LONG_RUN_PERIODS = 500
# Share of the last fifth of a run that is disturbed, from which its level at the end is unknown.
# Noticed by: test_host_noise.py::test_a_step_under_a_disturbed_host_is_a_note_beside_its_warning
_MAX_DISTURBED_END = 0.5
_LOAD_INTERVAL_S = 1.0  # Resolution of the load of all clients: that of samples by default
_LIMITED_BY = {
    Cause.CPU: "host",
    Cause.HOST_NOISE: "host",
    Cause.LATENCY: "none",
    Cause.UNKNOWN: None,
}


@dataclass(frozen=True)
class Context:
    """All runs of a campaign that have ended."""

    views: tuple[RunView, ...]  # of the runs, in the order of the plan
    _steady: dict[tuple[str, str], Steadiness] = field(default_factory=dict, repr=False)
    _explained: dict[str, tuple[Explanation, ...]] = field(default_factory=dict, repr=False)
    _steps: dict[int, dict[int, list[Run]]] = field(default_factory=dict, repr=False)
    _hosts_on_disk: dict[tuple[int, int], dict[tuple[str, str], dict[str, str]]] = field(
        default_factory=dict, repr=False
    )
    _loads: dict[tuple[str, int, str], ConcurrentLoad] = field(default_factory=dict, repr=False)

    def steadiness(self, view: RunView, direction: str) -> Steadiness:
        """Return whether the IOPS of one direction of a run are steady."""
        key = view.run.id, direction
        if key not in self._steady:
            t_s, iops = clean_rate_per_s(view, "iops", direction=direction)
            swing = swing_of(t_s, iops)
            judged = judge_steady(*without_swing(t_s, iops, swing))
            jumps = real_jumps(judged.changes, t_s, iops, least_s=least_level_s(view, direction))
            everything = rate_per_s(view, "iops", direction=direction)
            is_felt = swing is not None and t_s[-1] < _LONG_RUN_PERIODS * swing.period_s
            self._steady[key] = replace(
                judged,
                to_s=judged.to_s if swing is None else float(t_s[-1]),  # means end before
                state=_state_with_jumps(judged, jumps, is_felt=is_felt),
                changes=place_in_gaps(jumps, t_s, *everything),
            )
        return self._steady[key]

    def swing(self, view: RunView, direction: str) -> Swing | None:
        """Return the two levels between which one direction of a run swings, if it does."""
        return swing_of(*clean_rate_per_s(view, "iops", direction=direction))

    def steady_end(self, view: RunView, direction: str) -> Steadiness | None:
        """Return the steady stretch at the end of a run; None where there is none.

        A run that was to go on until it is steady ended when its last window was.
        """
        t_s, iops = clean_rate_per_s(view, "iops", direction=direction)
        whole, until = self.steadiness(view, direction), view.run.until
        if until is not None and whole.state is not State.STEADY:
            last = judge_last(t_s, iops, window_s=until.window_s, block_s=until.block_s)
            if last.state is State.STEADY:
                return last
        return steady_end(t_s, iops, whole)

    def load(self, view: RunView) -> ConcurrentLoad | None:
        """Return the load of all clients on a run's volume in its step; None for a single one."""
        if view.run.volume.kind is VolumeKind.UNKNOWN or not view.run.step:
            return None
        key = _volume_in_step(view)
        clients = self._clients[key]
        if len(clients) < 2:
            return None
        if key not in self._loads:
            self._loads[key] = concurrent_load(clients)
        return self._loads[key]

    def step(self, view: RunView) -> Sequence[Run]:
        """Return the runs of a run's step, whether they have ended or not."""
        key = id(view.campaign)
        if key not in self._steps:
            steps = self._steps.setdefault(key, {})
            for run in view.campaign.runs:
                steps.setdefault(run.step, []).append(run)
        return self._steps[key][view.run.step]

    def earlier(self, view: RunView) -> Earlier:
        """Return the earlier runs on the volume of a run."""
        return self._earlier[view.run.id]

    def explanations(self, view: RunView) -> tuple[Explanation, ...]:
        """Return the explanations of a run, for all its directions."""
        if view.run.id not in self._explained:
            others = self._comparable(view)
            self._explained[view.run.id] = tuple(
                explanation
                for direction in directions(view)
                for explanation in explain(
                    view, direction, others=others, earlier=self.earlier(view)
                )
            )
        return self._explained[view.run.id]

    def level(self, view: RunView, direction: str) -> Level | None:
        """Return the sustained level of one direction of a run; None without a series of fio.

        Requests of the device, which the kernel made of buffered I/Os, are not those of fio.
        """
        rates = rates_of(view, direction)
        if rates is None or rates.at_device:
            return None
        mine = [each for each in self.explanations(view) if each.direction == direction]
        return sustained_level(rates, mine)

    @cached_property
    def by_id(self) -> Mapping[str, RunView]:
        """Run id to its view."""
        return {view.run.id: view for view in self.views}

    @cached_property
    def finished(self) -> frozenset[str]:
        """Ids of the runs that finished."""
        return frozenset(view.run.id for view in self.views if view.is_finished)

    @cached_property
    def repeats(self) -> Mapping[str, Sequence[RunView]]:
        """Id of the last repeat of a workload to all of them; rounds are no repeats."""
        groups: dict[tuple[object, ...], list[RunView]] = {}
        for view in self.views:
            run = view.run
            is_result = run.phase is Phase.MEASURED and view.is_finished
            if is_result and run.profile not in view.campaign.rounds:
                job = self._cells_of_imports.get(run.id, run.job)
                key = (view.campaign.name, run.host, run.client, run.volume, run.profile, job)
                groups.setdefault(key, []).append(view)
        return {views[-1].run.id: views for views in groups.values() if len(views) > 1}

    @cached_property
    def _cells_of_imports(self) -> Mapping[str, object]:
        """Imported run to the number of its cell, for a file is named as its owner likes."""
        imports = [view for view in self.views if view.run.imported and view.is_finished]
        runs = {view.run.id: view.run for view in imports}
        rows = rows_with_options(
            (campaign, runs, [row for view in views for row in view.results], ())
            for campaign, views in groupby(imports, key=lambda view: view.campaign)
        )
        cells = zip(rows, design_of(rows).cell_of_rows, strict=True)
        return {str(run): cell for row, cell in cells for run in members_of(row)}

    @cached_property
    def disks(self) -> Mapping[str, Mapping[Volume, set[str]]]:
        """Host to volume to the kernel names of the disks that it is on."""
        disks: dict[str, dict[Volume, set[str]]] = {}
        for view in self.views:
            volumes = disks.setdefault(view.run.host, {})
            volumes.setdefault(view.run.volume, set()).update(view.disks)
        return disks

    def hosts_beside(self, view: RunView) -> Mapping[str, set[str]]:
        """Return disk to the hosts of one machine whose volumes are on it in the run's step.

        Pods that measure one volume together are one host: sharing it is what they are for.
        """
        machine = "" if view.host is None else view.host.machine
        if not machine or view.run.start is Start.SEQUENTIAL:
            return {}
        key = id(view.campaign), view.run.step
        if key not in self._hosts_on_disk:
            hosts: dict[tuple[str, str], dict[str, str]] = {}
            for run in self.step(view):
                other = self.by_id.get(run.id)
                if other is not None and other.host is not None:
                    for disk in other.disks:
                        on_disk = hosts.setdefault((other.host.machine, disk), {})
                        on_disk[run.host] = other.host.persistent_volume or run.host
            self._hosts_on_disk[key] = hosts
        hosts_on = {disk: self._hosts_on_disk[key].get((machine, disk), {}) for disk in view.disks}
        return {
            disk: set(machines)
            for disk, machines in hosts_on.items()
            if len({*machines.values()}) > 1
        }

    @cached_property
    def tracked(self) -> Mapping[str, Sequence[RunView]]:
        """Profile with rounds to the finished runs that decide when they end, in order."""
        by_profile: dict[str, list[RunView]] = {}
        for view in self.views:
            rounds = view.campaign.rounds.get(view.run.profile)
            is_result = view.run.phase is Phase.MEASURED and view.is_finished
            if rounds and is_result and view.run.job in {track.job for track in rounds.track}:
                by_profile.setdefault(view.run.profile, []).append(view)
        return by_profile

    @cached_property
    def _clients(self) -> dict[tuple[str, int, str], list[RunView]]:
        clients: dict[tuple[str, int, str], list[RunView]] = {}
        for view in self.views:
            clients.setdefault(_volume_in_step(view), []).append(view)
        return clients

    @cached_property
    def _earlier(self) -> dict[str, Earlier]:
        earlier: dict[str, Earlier] = {}
        latest: dict[tuple[str, Volume], Earlier] = {}
        for view in self.views:
            volume = view.run.host, view.run.volume
            is_known = view.run.volume.kind is not VolumeKind.UNKNOWN
            earlier[view.run.id] = latest.get(volume, Earlier()) if is_known else Earlier()
            if view.is_finished:
                latest[volume] = latest.get(volume, Earlier()).then(view)
        return earlier

    @cached_property
    def _shapes(self) -> dict[tuple[str, Volume, int], dict[Shape, list[tuple[int, RunView]]]]:
        """Host, volume and repeat to shape to its first runs, of at most two different jobs."""
        shapes: dict[tuple[str, Volume, int], dict[Shape, list[tuple[int, RunView]]]] = {}
        for index, view in enumerate(self.views):
            run = view.run
            if run.phase is not Phase.MEASURED or not view.is_finished:
                continue
            group = shapes.setdefault((run.host, run.volume, run.repeat), {})
            first = group.setdefault(_shape(view), [])
            if not first or (len(first) == 1 and first[0][1].run.job != run.job):
                first.append((index, view))
        return shapes

    def _comparable(self, view: RunView) -> list[RunView]:
        """Return other jobs on the same volume: the nearest deeper, flatter and of another size.

        Each costs a search for change points, so that all of a sweep would be too many.
        """
        if view.run.volume.kind is VolumeKind.UNKNOWN:
            return []
        group = self._shapes.get((view.run.host, view.run.volume, view.run.repeat), {})
        depth, size = _shape(view)
        deeper: list[tuple[int, int, RunView]] = []
        flatter: list[tuple[int, int, RunView]] = []
        sized: list[tuple[int, int, RunView]] = []
        for (other_depth, other_size), runs in group.items():
            other = next((pair for pair in runs if pair[1].run.job != view.run.job), None)
            if other is None:
                continue
            ranked = (abs(other_depth - depth), *other)
            if other_size != size:
                sized.append(ranked)
            elif other_depth != depth:
                (deeper if other_depth > depth else flatter).append(ranked)
        nearest = (
            min(runs, key=lambda ranked: ranked[:2]) for runs in (deeper, flatter, sized) if runs
        )
        return [other for _, _, other in nearest]


def _state_with_jumps(judged: Steadiness, jumps: Sequence[Change], *, is_felt: bool) -> State:
    is_flat = judged.drift_bound <= MAX_DRIFT
    state = judged.state
    if state is State.STEPPED and not jumps:
        state = State.STEADY if is_flat else State.NOISY
    return State.NOISY if state in {State.STEADY, State.TOO_SHORT} and is_felt else state


def _volume_in_step(view: RunView) -> tuple[str, int, str]:
    return view.run.host, view.run.step, view.run.volume.target


def _shape(view: RunView) -> Shape:
    depth = sum(workload.depth * workload.numjobs for workload in view.workloads)
    return depth, max(workload.block_bytes for workload in view.workloads)


@dataclass(frozen=True)
class ConcurrentLoad:
    """Load of all clients on one volume."""

    edges_s: Floats  # of intervals, in seconds since the epoch
    # run, then direction, to its rate in each of them; ``""`` for all runs
    bytes_per_s: dict[tuple[str, str], Floats]
    is_whole: bool  # whether all of them have a series

    def others_bytes(self, run: str, direction: str, *, from_s: float, to_s: float) -> float:
        """Return the bytes that all but one run moved in a time; NaN if one has no series."""
        if not self.is_whole:
            return math.nan
        nothing = np.zeros(len(self.edges_s) - 1)
        rate = self.bytes_per_s.get(("", direction), nothing) - self.bytes_per_s.get(
            (run, direction), nothing
        )
        inside = np.clip(self.edges_s, from_s, to_s)
        return float((rate * np.diff(inside)).sum())


def concurrent_load(views: Sequence[RunView]) -> ConcurrentLoad:
    """Return the load of concurrent runs on one volume."""
    series = pd.concat([view.series for view in views], ignore_index=True)
    summary = pd.concat([view.summary for view in views], ignore_index=True)
    known = series.dropna(subset=["utc", "bw_bytes_per_s"])
    is_whole = {view.run.id for view in views} == set(known["run"])
    if not is_whole:
        return ConcurrentLoad(np.zeros(1), {}, is_whole=False)
    rows = on_clock(known, summary, rate="bw_bytes_per_s", total="io_bytes")
    begin_s = float((rows["end_s"] - rows["width_s"]).min())
    count = math.ceil((float(rows["end_s"].max()) - begin_s) / _LOAD_INTERVAL_S)
    edges_s: Floats = begin_s + np.arange(count + 1, dtype=np.float64) * _LOAD_INTERVAL_S
    rates: dict[tuple[str, str], Floats] = {}
    for (run, _, direction), run_rows in rows.groupby(["run", "group", "direction"], sort=False):
        bandwidth = spread_rows(run_rows, "bw_bytes_per_s", edges_s)
        for name in (str(run), ""):
            rates[name, str(direction)] = rates.get((name, str(direction)), 0.0) + bandwidth
    return ConcurrentLoad(edges_s, rates, is_whole=True)


def verdict_rows(context: Context, views: Sequence[RunView] | None = None) -> list[Row]:
    """Return a row for each finished run and direction that has a series.

    Args:
        views: those to judge; None for all.
    """
    return [
        row
        for view in (context.views if views is None else views)
        if view.is_finished and view.run.tool is not Tool.WATCH  # its rate is what was asked for
        for direction in directions(view)
        for row in _verdict_rows(view, direction, context)
    ]


def _verdict_rows(view: RunView, direction: str, context: Context) -> Sequence[Row]:
    t_s, _ = rate_per_s(view, "iops", direction=direction)
    if not len(t_s):
        return ()
    flags = disturbed(view).at(t_s)
    causes = [each for each in context.explanations(view) if each.direction == direction]
    is_end_clean = flags[-max(1, len(flags) // 5) :].mean() < _MAX_DISTURBED_END
    return (
        {
            **view.campaign.identity_of(view.run, view.run.job),
            "direction": direction,
            "disturbed_percent": 100 * float(flags.mean()),
            **_steadiness(context.steadiness(view, direction)),
            **_steady_end(context.steady_end(view, direction)),
            **_level(context.level(view, direction) if is_end_clean else None),
            **_explained(causes, view.run.limits),
        },
    )


def _steadiness(judged: Steadiness) -> Row:
    return {
        "verdict": judged.state.value,
        "from_s": judged.from_s,
        "to_s": judged.to_s,
        "block_s": judged.block_s,
        "blocks": judged.blocks,
        "iops": judged.median,
        "spread_percent": _percent(judged.spread),
        "drift_percent": _percent(judged.drift),
        "drift_bound_percent": _percent(judged.drift_bound),
        "changes": len(judged.changes),
    }


def _steady_end(stretch: Steadiness | None) -> Row:
    if stretch is None:
        return {"steady_from_s": None, "steady_iops": None}
    return {"steady_from_s": stretch.from_s, "steady_iops": stretch.median}


def _level(level: Level | None) -> Row:
    if level is None:
        return {"level_iops": None, "level_low_iops": None, "level_high_iops": None}
    return {
        "level_iops": level.iops,
        "level_low_iops": level.low_iops,
        "level_high_iops": level.high_iops,
    }


def _explained(explanations: Sequence[Explanation], limits: Limits) -> Row:
    if not explanations:
        names = ("bottleneck", "limited_by", "bottleneck_level", "causes", "explanation")
        return dict.fromkeys(names)
    return {
        "limited_by": _bottleneck_side(explanations[0], limits),
        "causes": ", ".join(dict.fromkeys(each.cause.value for each in explanations)),
        "bottleneck": explanations[0].cause.value,
        "bottleneck_level": explanations[0].level,
        "explanation": " | ".join(explanation.text for explanation in explanations),
    }


def _bottleneck_side(level: Explanation, limits: Limits) -> str | None:
    field_of = {Cause.IOPS_LIMIT: "iops", Cause.BANDWIDTH_LIMIT: "bandwidth_bytes_per_s"}
    name = field_of.get(level.cause, "")
    if name in limits.machine_limits and is_near(level.level, getattr(limits, name)):
        return "machine"
    return _LIMITED_BY.get(level.cause, "volume")


def _percent(share: float) -> float | None:
    return 100 * share if math.isfinite(share) else None
