"""Overrides: what they reach, what they leave, and what they refuse."""

import pytest

from tests.plan.loading import load
from volbench.errors import InputError
from volbench.model.profile.profile_settings import Limits

MATRIX = """
name: x
defaults: {size: 1g, runtime: 10s, time_based: 1}
limits: {data: {iops: 5}, os: {iops: 6}}
matrix: {rw: [randread, randwrite], bs: [4k, 64k]}
jobs: {o: {role: os, rw: read}}
"""


def test_the_last_of_two_settings_counts() -> None:
    """Settings are applied in the order given, whatever name of an option they use."""
    assert load(MATRIX, "size=1m", "size=2m").defaults["size"] == str(2**21)
    assert load(MATRIX, "timeout=5s", "runtime=7s").defaults["runtime"] == "7s"


def test_jobs_of_a_matrix_have_names_too() -> None:
    """One cell of a matrix can be changed by its name."""
    jobs = {job.name: job for job in load(MATRIX, "randread-bs4k.iodepth=8").jobs}
    assert jobs["randread-bs4k"].options["iodepth"] == "8"
    assert "iodepth" not in jobs["randread-bs64k"].options


def test_an_axis_can_be_set_for_all() -> None:
    """An option that a matrix varies is no exception: every job gets the value."""
    profile = load(MATRIX, "bs=16k")
    assert {job.options["bs"] for job in profile.jobs if "bs" in job.options} == {"16384"}


def test_limits_for_all_reach_every_role() -> None:
    """What is set without a role holds for those with limits of their own, too."""
    profile = load(MATRIX, "limits.iops=9", "limits.os.bandwidth=1MB/s")
    assert profile.limits == {
        "*": Limits(iops=9),
        "data": Limits(iops=9),
        "os": Limits(iops=9, bandwidth_bytes_per_s=1e6),
    }
    assert load(MATRIX, "limits.iops=").limits["os"] == Limits()


@pytest.mark.parametrize(
    "setting",
    [
        *("size", "=1", "sice=4m", "size=4q", "z.size=1m", "sample=1ms", "size=1k"),
        *("repeat=0", "repeat=x", "repeat=99999999", "repeat=\u0663", f"repeat={'9' * 5000}"),
        *("order=odd", "seed=-1", "seed=2147483648", f"seed={'9' * 5000}"),
        *("limits.iops=-1", "limits.speed=1", "limits.iops=125MB/s", "limits.dta.iops=5"),
        *("limits.a.b.iops=5", "limits=5", "nosuch=", ".bs=4k", "o.=4k", "o.role=data", "jobs=1"),
        *("exec_prerun=id", "filename=/etc/passwd", "write_bw_log=x", "o.of=/dev/sda"),
        *("sections.s.bs=4k", "randread-bs4k.bs=2g"),
    ],
)
def test_invalid_settings_are_refused(setting: str) -> None:
    """The message quotes the setting, and there is a hint."""
    with pytest.raises(InputError) as caught:
        load(MATRIX, setting)
    assert setting in caught.value.message
    assert caught.value.hint


def test_settings_that_are_invalid_alone_may_be_valid_together() -> None:
    """Only the outcome of all settings is judged."""
    profile = load(MATRIX, "size=1k", "bs=512", "o.bs=512")
    assert profile.defaults["size"] == "1024"
