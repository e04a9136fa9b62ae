"""Events of a run, and what is not claimed of them: stalls that repeat, rises, missing logs."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyse.findings.conftest import (
    a_run,
    a_view,
    device_sample,
    found,
    series_rows,
    summary_row,
)
from tests.analyse.runs_at_levels import level, ran
from volbench.analyse.bottleneck.bottleneck import explain, explain_level
from volbench.analyse.bottleneck.sustained_level import sustained_level
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.run_rates import rates_of, stall_spans
from volbench.model.campaign.planned_run import Imported
from volbench.model.results.finding import Cause
from volbench.model.results.provenance import HostFacts

GUEST = HostFacts(host="local", virtualization="kvm")


def stalled(begins: tuple[float, ...], *, for_s: float, slowest_s: float | None = None) -> RunView:
    """Return a run of a minute at 1000 IOPS in which nothing completes at some times."""
    edges = np.arange(0, 61.0)
    lost = np.zeros(60)
    for begin in begins:
        lost += np.clip(np.minimum(edges[1:], begin + for_s) - np.maximum(edges[:-1], begin), 0, 1)
    run = a_run()
    rates = [float(rate) for rate in 1000 * (1 - lost)]
    slowest = summary_row(run, lat_max_s=slowest_s or for_s)
    return a_view(run, series=series_rows(run, rates), summary=[slowest])


def spans_of(view: RunView) -> list[tuple[float, float]]:
    """Return the stalls of all its writes."""
    t_s, iops = (view.series[name].to_numpy(dtype=float) for name in ("t_s", "iops"))
    return stall_spans(view, t_s, iops, direction="write")


@pytest.mark.parametrize("for_s", [1.2, 1.6, 1.9, 2.4])
def test_each_of_several_equal_stalls_has_its_length(for_s: float) -> None:
    """Whether a second is empty depends on the fraction of a second at which a stall begins."""
    begins = (8.0, 17.3, 26.5, 35.7, 44.9)
    found = spans_of(stalled(begins, for_s=for_s))
    assert [begin for begin, _ in found] == pytest.approx(begins, abs=0.16)
    assert [end - begin for begin, end in found] == pytest.approx([for_s] * 5, abs=0.26)


def test_a_slow_second_beside_a_stall_is_not_a_stall() -> None:
    """Seconds at half the rate do not lack as many completions as the slowest I/O took."""
    view = stalled((20.0,), for_s=1.5)
    slow = view.series["iops"].mask(view.series["t_s"].isin([40.0, 41.0]), 600.0)
    ((begin, end),) = spans_of(replace(view, series=view.series.assign(iops=slow)))
    assert begin == pytest.approx(20.0)
    assert end == pytest.approx(21.5)


def test_many_stalls_are_one_explanation() -> None:
    """Twelve lines that say the same are not read."""
    found = explain(stalled(tuple(4.0 + 7 * n for n in range(8)), for_s=2.0), "write")
    (stall,) = (entry for entry in found if entry.cause is Cause.STALL)
    assert (stall.from_s, stall.to_s) == (4, 55)
    assert "in 8 stalls of 2s" in stall.speaks_for[0]


def test_the_level_does_not_count_what_was_temporary() -> None:
    """Seconds of a stall are left out, and those before it are not."""
    view = stalled((40.0,), for_s=4.5)
    rates = rates_of(view, "write")
    assert rates is not None
    assert sustained_level(rates, explain(view, "write")).iops == pytest.approx(1000, rel=1e-6)
    noise = np.exp(0.2 * np.random.default_rng(3).normal(size=60))
    noisy = rates_of(ran(list(1000 * noise)), "write")
    assert noisy is not None
    unknown = ran([*(1000 * noise[:40]), *[300.0] * 8, *(1000 * noise[48:])])
    for dip in (unknown, replace(unknown, host=GUEST)):
        found = explain(dip, "write")
        assert (Cause.NEIGHBOUR in {entry.cause for entry in found}) is (dip.host is GUEST)
        dipped = rates_of(dip, "write")
        assert dipped is not None
        whole = sustained_level(noisy, ())
        assert sustained_level(dipped, found).reach < 1.3 * whole.reach


@pytest.mark.parametrize(("slow", "events"), [(6, 0), (12, 1)])
def test_a_single_sample_is_not_a_dip(slow: int, events: int) -> None:
    """One and a half seconds below the rest are no load of other clients; three may be."""
    run = a_run(sample_s=0.25)
    rates = [*level(1000, 120), *level(500, slow), *level(1000, 120)]
    series = [{**row, "t_s": float(str(row["t_s"])) / 4} for row in series_rows(run, rates)]
    view = a_view(run, series=series, summary=[summary_row(run, runtime_s=62.0)], host=GUEST)
    found = explain(view, "write")
    assert sum(entry.cause is Cause.NEIGHBOUR for entry in found) == events


@pytest.mark.parametrize(("climb_s", "causes"), [(1.5, 0), (4, 1)])
def test_the_first_second_is_not_a_ramp_up(climb_s: float, causes: int) -> None:
    """A disk seeks to its file and fio starts its threads: that warms no blocks."""
    run = a_run(sample_s=0.25)
    rise = [200.0] * round(4 * climb_s)
    series = [
        {**row, "t_s": float(str(row["t_s"])) / 4}
        for row in series_rows(run, [*rise, *level(1000, 240)])
    ]
    view = a_view(run, series=series, host=GUEST)
    climbs = [entry for entry in explain(view, "write") if "cold_iops" in entry.evidence]
    assert len(climbs) == causes


def test_a_rise_in_one_step_may_have_another_cause_than_warm_blocks() -> None:
    """Blocks get warm one by one; of an import nobody knows what was done before."""
    (climb,) = (entry for entry in explain(ran(level(500, 6) + level(1000, 54)), "write")[1:])
    assert climb.cause is Cause.UNKNOWN
    assert len(climb.candidates) == 2
    view = ran([300 + 700 * second / 30 for second in range(30)] + level(1000, 60))
    imported = view.run.model_copy(update={"imported": Imported(files=(), jobs=())})
    climb = explain(replace(view, run=imported), "write")[-1]
    assert (climb.cause, len(climb.candidates)) == (Cause.UNKNOWN, 2)
    assert found(replace(view, run=imported), rule="cold-blocks") == []


@pytest.mark.parametrize(("to_s", "words"), [(8, 2), (30, 1)])
def test_a_short_climb_of_a_volume_may_be_a_ramp_up(to_s: int, words: int) -> None:
    """Warm blocks are named for a volume nobody wrote to, with what would look the same."""
    rise = [300 + 700 * second / to_s for second in range(to_s)]
    found = explain(ran(rise + level(1000, 90 - to_s)), "write")
    (climb,) = (entry for entry in found if entry.cause is Cause.WARMING)
    assert "no earlier run" in climb.speaks_for[-1]
    assert len(climb.speaks_against) == words


@pytest.mark.parametrize(
    ("steal", "cause"), [(12.0, Cause.UNKNOWN), (0.1, Cause.WARMING), (-12.0, Cause.WARMING)]
)
def test_a_climb_while_the_host_is_busy_has_two_candidates(steal: float, cause: Cause) -> None:
    """Other load on the host that ends looks the same; load that grows does not."""
    rates = [300 + 700 * second / 30 for second in range(30)] + level(1000, 60)
    run = ran(rates).run
    shares = [steal] * 30 + [steal / 2 if steal > 0 else 20.0] * 60
    first = device_sample(run, 1.0)
    samples = [{**first, "t_s": t_s, "steal_percent": abs(shares[t_s - 1])} for t_s in range(1, 91)]
    view = ran(rates, device=samples)
    climbs = [each for each in explain(view, "write") if each.from_s == 0]
    assert cause in {climb.cause for climb in climbs if climb.level < 500}
    (entry,) = found(view, rule="cold-blocks")
    for words in (entry.message, str(entry.evidence["cause"])):  # which the answer quotes
        assert ("undecided" in words) is (cause is Cause.UNKNOWN)


def test_logs_of_iops_alone_are_explained() -> None:
    """Bandwidth follows from the size of the I/Os."""
    view = ran(level(3000, 20) + level(300, 40))
    alone = replace(view, series=view.series.assign(bw_bytes_per_s=np.nan))
    both, found = explain(view, "write"), explain(alone, "write")
    assert [entry.cause for entry in found] == [entry.cause for entry in both]
    assert found


@pytest.mark.parametrize(
    ("least_s", "noise", "cause"),
    [(0.0001, 0.04, Cause.UNKNOWN), (0.0007, 0.04, Cause.LATENCY), (0.0007, 0.0, Cause.UNKNOWN)],
)
def test_a_deep_queue_is_not_called_unsaturated(least_s: float, noise: float, cause: Cause) -> None:
    """The fastest of 16 in flight took a twentieth of the mean, or the rate never moves."""
    view = ran(level(8000, cv=noise), lat_s=(0.002, 0.0008, least_s))
    rates = rates_of(view, "write")
    assert rates is not None
    uneven = replace(rates, lat_p30_s=0.0015, lat_p70_s=0.0022)
    assert explain_level(view, uneven).cause is cause
