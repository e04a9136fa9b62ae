"""The measures of a replay, and their limits."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.traces.made_traces import made_rows, made_trace
from volbench.errors import InputError
from volbench.extensions.traces.fidelity import Arrivals, change_of, compare, fidelity, recording_of
from volbench.extensions.traces.replay_plan import Target, load_trace
from volbench.extensions.traces.trace_file import Kind
from volbench.model.campaign.planned_run import Campaign, Run, Section, Volume, VolumeKind
from volbench.store.layout import Layout


def _load(count: int = 1000, latency_s: float = 1e-3) -> Arrivals:
    return Arrivals(
        (np.arange(count) * 2e-3).astype(np.float64),
        np.full(count, latency_s),
        np.full(count, 4096.0),
        np.arange(count) % 4 > 0,
    )


def _missed(recorded: Arrivals, replayed: Arrivals) -> dict[str, str]:
    measures = compare("run", recorded, replayed)
    return {each.name: each.reason for each in measures if each.is_met is False}


def test_latencies_of_a_coarse_clock_have_no_ratio() -> None:
    """A recording whose I/Os took no time is compared by everything else."""
    recorded = _load(latency_s=0.0)
    measures = {each.name: each for each in compare("run", recorded, _load())}
    assert np.isnan(measures["read p50"].difference)
    assert measures["requests"].is_met


def test_a_few_unknown_latencies_hide_nothing() -> None:
    """The last I/Os of a recording complete after it; with many, the others say nothing."""
    recorded, replayed = _load(), _load()
    recorded.latencies_s[1::200] = nan
    measures = {each.name: each for each in compare("run", recorded, replayed)}
    assert measures["utilization"].is_met
    assert measures["read p50"].difference == 0
    recorded.latencies_s[1::50] = nan
    measures = {each.name: each for each in compare("run", recorded, replayed)}
    assert measures["utilization"].is_met is None
    assert np.isnan(measures["read p50"].recorded)


def test_the_same_load_at_another_time_of_day_meets_all() -> None:
    """The clock of the replay does not matter, nor jitter below a millisecond."""
    recorded = _load()
    jitter = np.random.default_rng(1).uniform(-4e-4, 4e-4, 1000)
    replayed = replace(recorded, arrivals_s=recorded.arrivals_s + 77.5 + jitter)
    assert _missed(recorded, replayed) == {}


def test_a_drift_is_a_lag_although_each_gap_is_right() -> None:
    """Fio's timestamps of version 3 end tens of milliseconds late (fio issue 1537)."""
    recorded = _load()
    replayed = replace(recorded, arrivals_s=recorded.arrivals_s * 1.01)
    missed = _missed(recorded, replayed)
    assert {*missed} == {"lag p50", "lag p99"}
    assert "ended late" in missed["lag p50"]


def test_a_slow_target_is_named() -> None:
    """Its utilization differs, and late arrivals are its fault."""
    recorded = _load()
    late = recorded.arrivals_s * 1.01
    missed = _missed(recorded, replace(_load(latency_s=1.9e-3), arrivals_s=late))
    assert missed["lag p99"].startswith("the target is 1.9 times as slow")
    assert missed["utilization"] == "the target's mean latency is 1.90 times that of the recording"


def test_lost_ios_are_counted_and_hide_the_lag() -> None:
    """Without a partner for each arrival there is no lag to speak of."""
    measures = {each.name: each for each in compare("run", _load(), _load(980))}
    assert measures["requests"].is_met is False
    assert measures["requests"].reason.startswith("20 I/Os did not complete")
    assert measures["lag p99"].is_met is None
    assert measures["requests"].difference == pytest.approx(-0.02)


def test_another_mix_is_beyond_one_percent() -> None:
    """Two percent of the reads became writes."""
    recorded = _load()
    reads = recorded.reads.copy()
    reads[np.flatnonzero(reads)[:20]] = False
    assert [*_missed(recorded, replace(recorded, reads=reads))] == ["reads"]


@pytest.mark.parametrize(
    ("waited_percent", "reason"),
    [
        (60.0, "the host scheduled fio late: tasks waited for a CPU 60 % of the time"),
        (2.0, "no cause found: tasks waited for a CPU 2 % of the time"),
        (float("nan"), "no cause found: the host does not report"),
    ],
)
def test_the_host_is_blamed_only_if_its_cpus_were_waited_for(
    waited_percent: float, reason: str
) -> None:
    """Arrivals that are late in the middle, and on time in the end."""
    recorded = _load()
    arrivals_s = recorded.arrivals_s.copy()
    arrivals_s[400:500] += 5e-3
    late = replace(recorded, arrivals_s=arrivals_s)
    measures = {
        each.name: each for each in compare("run", recorded, late, waited_percent=waited_percent)
    }
    assert measures["lag p99"].reason.startswith(reason)


@pytest.mark.parametrize(
    ("replayed", "met", "change"),
    [(200, {True}, "+0 %"), (190, {False}, "-5.0 %"), (nan, {None}, "n/a")],
)
def test_flushes_are_compared_where_fio_counted_them(
    replayed: float, met: set[bool | None], change: str
) -> None:
    """They are in the table of a recording that has some."""
    recorded = replace(_load(), flushes=200)
    measures = compare("run", recorded, replace(_load(), flushes=replayed))
    (flushes,) = (each for each in measures if each.name == "flushes")
    assert (flushes.recorded, {flushes.is_met}, change_of(flushes)) == (200, met, change)
    assert "fio did not count them" in flushes.reason
    without = replace(recorded, flushes=0)
    assert "flushes" not in {each.name for each in compare("run", without, without)}


@pytest.mark.parametrize("block_bytes", [512, 4096])
def test_a_trace_is_recognised_in_whole_blocks_of_its_target(
    block_bytes: int, tmp_path: Path
) -> None:
    """Without its discards, which no file can do; one of other sizes is another trace."""
    kinds = [Kind.READ, Kind.WRITE, Kind.DISCARD, Kind.FLUSH]
    replayed, unrelated = (
        made_trace(
            tmp_path / f"{size}.parquet",
            made_rows(
                [0, 10, 20, 30],
                offset_bytes=[512, 8192, 0, 0],
                size_bytes=[size, size, 4096, 0],
                kind=kinds,
            ),
        )
        for size in (1536, 6000)
    )
    layout = Layout(tmp_path / "campaign")
    volume = Volume(role="data", kind=VolumeKind.FILE, target="/data/file")
    section = Section(name="replay", options={"read_iolog": "/data/log"})
    run = Run(id="r", profile="p", job="replay", volume=volume, sections=(section,))
    own = recording_of(run, layout.run("r"))
    own.parent.mkdir(parents=True)
    made_trace(own, load_trace(replayed, Target(None, block_bytes)).rows)
    campaign = Campaign(name="c", created_utc="2026-11-27T00:00:00Z", runs=(run,), seed=0)
    assert fidelity(layout, campaign, trace=replayed) == []  # the run has no files
    with pytest.raises(InputError, match="is not the trace that c replayed"):
        fidelity(layout, campaign, trace=unrelated)
