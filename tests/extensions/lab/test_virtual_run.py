"""Virtual time: raw files as fio leaves them, with the truth of the scenario in them."""

import json
from pathlib import Path

import pytest

from tests.extensions.lab.proof import Workload
from tests.extensions.lab.virtual import measure_virtually
from tests.extensions.lab.virtual_client import MOST_IOPS, workload_of
from tests.extensions.lab.virtual_run import VirtualVolume
from volbench.errors import InputError
from volbench.extensions.lab.scenario import read_scenario


def test_mixes_jobs_and_rates() -> None:
    """Two jobs of a mix keep their rate, and each has its own entry and logs."""
    options = {"rw": "randrw", "rwmixread": "75", "numjobs": "2", "rate_iops": "200"}
    done = VirtualVolume(read_scenario("clean")).run(options | {"runtime": "10s", "iodepth": "4"})
    jobs = json.loads(done.files["fio.json"])["jobs"]
    assert [job["read"]["iops"] + job["write"]["iops"] for job in jobs] == [
        pytest.approx(200, rel=0.01)
    ] * 2
    reads, writes = jobs[0]["read"]["total_ios"], jobs[0]["write"]["total_ios"]
    assert reads / (reads + writes) == pytest.approx(0.75, abs=0.03)
    for number in (1, 2):
        rows = done.files[f"series_iops.{number}.log"].splitlines()
        assert len(rows) == 2 * 20, "a row for each direction and half second"


def test_a_size_ends_a_run() -> None:
    """Without time_based, the region is passed over once."""
    options = {"rw": "read", "bs": "64k", "size": "8m", "iodepth": "4"}
    done = VirtualVolume(read_scenario("clean")).run(options)
    assert json.loads(done.files["fio.json"])["jobs"][0]["read"]["total_ios"] == 128


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


def test_a_run_of_free_reads_terminates() -> None:
    """Never-written blocks are answered at once, yet not at an infinite rate."""
    done = VirtualVolume(read_scenario("never-written")).run({"rw": "randread", "runtime": "1s"})
    assert json.loads(done.files["fio.json"])["jobs"][0]["read"]["iops"] <= MOST_IOPS + 1


@pytest.mark.parametrize("options", [{"rw": "trim"}, {"rw": "read", "bssplit": "4k/50"}])
def test_unsupported_options_are_refused(options: dict[str, str]) -> None:
    """An option that would change the outcome is never ignored."""
    with pytest.raises(InputError, match="virtual time"):
        workload_of(options)


def test_a_ramp_up_is_not_a_stall(tmp_path: Path) -> None:
    """Seconds at the begin of a warm-up lack completions beside the end, not beside each other."""
    workload = Workload("randwrite", iodepth=16, runtime_s=36)
    proof = measure_virtually("warm-up-curve", tmp_path, workload)
    assert "cold-blocks" in proof.findings()
    assert "stall" not in proof.findings()
