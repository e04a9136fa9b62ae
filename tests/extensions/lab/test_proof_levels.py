"""Levels on simulated volumes: profile, fio, frames and verdict against the truth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.lab.proof import Proof, Workload
from tests.extensions.lab.virtual import measure_virtually
from tests.extensions.lab.virtual_run import VirtualVolume
from volbench.extensions.lab.scenario import read_scenario
from volbench.model.profile.profile_settings import Limits

DECLARED = Limits(iops=1100, bandwidth_bytes_per_s=125e6)

ONE_SMALL = Workload("write", iodepth=1)
SIXTEEN_SMALL = Workload("write", iodepth=16, runtime_s=10)
ONE_LARGE = Workload("write", bs="128k", iodepth=1)
LARGE = Workload("write", bs="256k", runtime_s=10)


@pytest.fixture(name="p15", scope="module")
def _p15(tmp_path_factory: pytest.TempPathFactory) -> Proof:
    """Four workloads on a simulated P15 of which nothing was declared, one after another."""
    folder = tmp_path_factory.mktemp("p15")
    return measure_virtually("p15", folder, ONE_SMALL, SIXTEEN_SMALL, ONE_LARGE, LARGE)


def verdicts(proof: Proof, workload: Workload) -> list[Mapping[str, Any]]:
    """Return what is said of a workload without any declaration, and with the truth declared."""
    return [proof.verdict(workload), proof.verdict_given(DECLARED, workload)]


def test_one_small_write_at_a_time_is_limited_by_latency(p15: Proof) -> None:
    """Test 3 of the article: about 400 IOPS, nothing is full."""
    assert p15.iops(ONE_SMALL) == pytest.approx(400, rel=0.03)
    for verdict in verdicts(p15, ONE_SMALL):
        assert verdict["bottleneck"] == p15.truth(ONE_SMALL).bottleneck == "latency"


def test_sixteen_small_writes_reach_the_iops_limit(p15: Proof) -> None:
    """Test 4 of the article: 1,100 IOPS, the cap, whether it was declared or not."""
    for verdict in verdicts(p15, SIXTEEN_SMALL):
        assert verdict["bottleneck_level"] == pytest.approx(1100, rel=0.03)
        assert verdict["bottleneck"] == p15.truth(SIXTEEN_SMALL).bottleneck == "iops-limit"
        assert verdict["verdict"] == "steady"


def test_one_large_write_at_a_time_is_limited_by_latency(p15: Proof) -> None:
    """Test 5 of the article: about 200 IOPS of 128 KiB."""
    assert p15.iops(ONE_LARGE) == pytest.approx(200, rel=0.03)
    for verdict in verdicts(p15, ONE_LARGE):
        assert verdict["bottleneck"] == "latency"


def test_large_writes_reach_the_bandwidth_limit(p15: Proof) -> None:
    """125 MB/s bind before 1,100 IOPS do."""
    for verdict in verdicts(p15, LARGE):
        assert verdict["bottleneck_level"] == pytest.approx(125e6, rel=0.03)
        assert verdict["bottleneck"] == p15.truth(LARGE).bottleneck == "bandwidth-limit"


def test_a_clean_volume_has_no_findings(tmp_path: Path) -> None:
    """On an even volume nothing but notes is found, and it is steady."""
    proof = measure_virtually("clean", tmp_path, Workload("randwrite", iodepth=4, runtime_s=20))
    assert proof.verdict()["verdict"] == "steady"
    assert proof.verdict()["bottleneck"] == "latency"
    assert proof.iops() == pytest.approx(proof.truth().iops, rel=0.03)
    assert proof.findings() == []


def test_a_volume_keeps_its_state_between_runs() -> None:
    """The second pass finds warm blocks; a rest refills credits."""
    volume = VirtualVolume(read_scenario("cold-write"))
    size = str(read_scenario("cold-write").size_bytes)
    once = {"rw": "write", "bs": "64k", "iodepth": "4", "size": size}
    first, second = (volume.run(once).elapsed_s for _ in range(2))
    assert first > 2 * second
    volume.rest(10)
    third = volume.run(once)
    assert third.begin_utc_s > second + 10


def test_a_ramp_up_is_not_a_stall(tmp_path: Path) -> None:
    """Seconds at the begin of a warm-up lack completions beside the end, not beside each other."""
    workload = Workload("randwrite", iodepth=16, runtime_s=36)
    proof = measure_virtually("warm-up-curve", tmp_path, workload)
    assert "cold-blocks" in proof.findings()
    assert "stall" not in proof.findings()
