"""Changes over time on simulated volumes: warm-up, credits, caches, stalls, neighbours.

Virtual time shows every case in seconds. Two are proven in real time too, with real fio: credits
that run out, and blocks that were never written.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.extensions.lab.proof import SAMPLE_S, Proof, Workload, made, measure
from tests.extensions.lab.virtual import measure_virtually
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import find
from volbench.extensions.lab.scenario import Scenario
from volbench.model.profile.profile_settings import Limits

Measure = Callable[..., Proof]

THIRD_OF_GP2 = """
name: third-of-gp2
size: 64m
restored: true
service: {read: 1ms, write: 1ms, slots: 32}
burst: {iops: {baseline: 100, to: 500, credits: 4000}}
"""
"""Rates that the server reaches beside other load, which in real time cannot be excluded."""

OTHER_COLD = """
name: other-cold
size: 48m
block: 128k
service: {read: 1ms, write: {latency: 3ms, sigma: 0.1}, slots: 32}
limits: {iops: 900}
first_touch: {write: 60ms, parallel: 3}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "workload"),
    [
        pytest.param("cold-write", Workload("randwrite", iodepth=16, runtime_s=24), id="write"),
        pytest.param("cold-read", Workload("randread", iodepth=8, runtime_s=26), id="read"),
        pytest.param(OTHER_COLD, Workload("randwrite", iodepth=12, runtime_s=25), id="other"),
    ],
)
def test_warming_up_is_recognised(tmp_path: Path, scenario: str, workload: Workload) -> None:
    """Penalty within 5 points, time to warm within an interval and 5 %, and the right reason."""
    known = made(scenario) if "\n" in scenario else scenario
    proof = measure_virtually(known, tmp_path, workload)
    curve = proof.curve
    assert curve.penalty == pytest.approx(proof.truth().penalty, abs=0.05)
    assert curve.plateau_iops == pytest.approx(proof.truth().iops, rel=0.03)
    assert curve.to_90_s == pytest.approx(
        proof.truth().warm_90_s, abs=SAMPLE_S + 0.05 * proof.truth().warm_90_s
    )
    assert "cold blocks warming up" in proof.verdict()["explanation"]
    assert "cold-blocks" in proof.findings()


@pytest.mark.parametrize(
    ("measured", "scenario", "baseline"),
    [
        pytest.param(measure_virtually, "gp2", 300, id="virtual"),
        pytest.param(measure, made(THIRD_OF_GP2), 100, id="real", marks=pytest.mark.alone),
    ],
)
def test_credits_run_out(
    tmp_path: Path, measured: Measure, scenario: str | Scenario, baseline: int
) -> None:
    """The time of exhaustion is found to 5 %, and so is the baseline, declared or not."""
    proof = measured(scenario, tmp_path, Workload("randwrite", iodepth=16, runtime_s=25))
    truth = proof.truth()
    declared = Limits(iops=baseline, burst_iops=5 * baseline, burst_ios=40 * baseline)
    for verdict in (proof.verdict(), proof.verdict_given(declared)):
        assert verdict["bottleneck"] == "credits"
        assert verdict["bottleneck_level"] == pytest.approx(baseline, rel=0.03)
        assert verdict["verdict"] == "stepped"
        assert verdict["steady_iops"] == pytest.approx(baseline, rel=0.03)
        assert verdict["steady_from_s"] == pytest.approx(truth.fast_for_s, rel=0.05, abs=SAMPLE_S)
    for view in (proof.view(), proof.view(limits=declared)):
        (ran_out,) = (entry for entry in find(Context((view,))) if entry.rule == "credits-ran-out")
        assert ran_out.from_s == pytest.approx(truth.fast_for_s, rel=0.05, abs=SAMPLE_S)


@pytest.mark.slow
def test_a_full_cache_is_recognised(tmp_path: Path) -> None:
    """Fast for eight seconds, then nothing for twelve: a cache, and two findings."""
    proof = measure_virtually(
        "azure-cache", tmp_path, Workload("randwrite", iodepth=16, runtime_s=34)
    )
    assert proof.verdict()["bottleneck"] == "slower"
    assert {"stall", "not-steady"} <= set(proof.findings())
    findings = proof.campaign.findings.frame
    first = findings[findings["rule"] == "stall"].iloc[0]
    assert first["from_s"] == pytest.approx(proof.truth().fast_for_s, abs=2 * SAMPLE_S)
    length = first["to_s"] - first["from_s"]
    assert length == pytest.approx(proof.truth().stall_s, abs=2 * SAMPLE_S)


@pytest.mark.slow
def test_a_drift_is_not_a_step(tmp_path: Path) -> None:
    """An even loss of speed is drifting, with its size."""
    proof = measure_virtually("drift", tmp_path, Workload("randwrite", runtime_s=30))
    assert proof.verdict()["verdict"] == "drifting"
    assert proof.verdict()["drift_percent"] == pytest.approx(-22, abs=4)


@pytest.mark.alone
def test_reads_of_unwritten_blocks_are_reported(tmp_path: Path) -> None:
    """Reads of a volume that was never written are marked invalid."""
    proof = measure(
        "never-written", tmp_path, Workload("randread", runtime_s=8), more="cold_probe: true"
    )
    assert "never-written" in proof.findings("invalid")
    assert proof.iops() > 3 * proof.truth().iops
