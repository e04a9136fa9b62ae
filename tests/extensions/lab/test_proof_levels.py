"""Levels on simulated volumes: profile, fio, frames and verdict against the truth."""

from pathlib import Path

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
    folder = tmp_path_factory.mktemp("p15")
    return measure_virtually("p15", folder, ONE_SMALL, SIXTEEN_SMALL, ONE_LARGE, LARGE)


@pytest.mark.parametrize(
    ("workload", "reached", "bottleneck"),
    [
        (ONE_SMALL, 400, "latency"),
        (SIXTEEN_SMALL, 1100, "iops-limit"),
        (ONE_LARGE, 200, "latency"),
        (LARGE, 125e6 / (256 << 10), "bandwidth-limit"),
    ],
)
def test_levels_and_limits_are_those_of_the_article(
    p15: Proof, workload: Workload, reached: float, bottleneck: str
) -> None:
    """Its tests 3, 4, 5 and 8, without any declaration, and with the truth declared."""
    assert p15.truth(workload).bottleneck == bottleneck
    assert p15.iops(workload) == pytest.approx(reached, rel=0.03)
    for verdict in (p15.verdict(workload), p15.verdict_given(DECLARED, workload)):
        assert verdict["bottleneck"] == bottleneck
        if bottleneck != "latency":
            factor = 256 << 10 if bottleneck == "bandwidth-limit" else 1
            assert verdict["bottleneck_level"] == pytest.approx(reached * factor, rel=0.03)
            assert verdict["verdict"] == "steady"


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
