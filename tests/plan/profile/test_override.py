"""Overrides: what they reach, what they leave, and what they refuse."""

from __future__ import annotations

import pytest

from volbench.errors import InputError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.profile.load_profile import load_profile

TABLE = shipped_table()

MATRIX = """
name: x
defaults: {size: 1g, runtime: 10s, time_based: 1}
limits: {data: {iops: 5}, os: {iops: 6}}
matrix: {rw: [randread, randwrite], bs: [4k, 64k]}
jobs: {o: {role: os, rw: read}}
"""


def load(text: str, *settings: str) -> Profile:
    """Load a profile against the shipped table."""
    return load_profile(text, path="p.yaml", table=TABLE, settings=settings)


def changed(text: str, *settings: str) -> Profile:
    """Load a profile and apply overrides."""
    return load(text, *settings)


@pytest.mark.parametrize("name", profile_names())
def test_without_settings_the_profile_is_unchanged(name: str) -> None:
    """A profile stays itself."""
    text, _ = read_profile(name)
    assert changed(text) == load(text)


def test_the_last_of_two_settings_counts() -> None:
    """Settings are applied in the order given, whatever name of an option they use."""
    assert changed(MATRIX, "size=1m", "size=2m").defaults["size"] == str(2**21)
    assert changed(MATRIX, "timeout=5s", "runtime=7s").defaults["runtime"] == "7s"


def test_jobs_of_a_matrix_have_names_too() -> None:
    """One cell of a matrix can be changed by its name."""
    jobs = {job.name: job for job in changed(MATRIX, "randread-bs4k.iodepth=8").jobs}
    assert jobs["randread-bs4k"].options["iodepth"] == "8"
    assert "iodepth" not in jobs["randread-bs64k"].options


def test_an_axis_can_be_set_for_all() -> None:
    """An option that a matrix varies is no exception: every job gets the value."""
    profile = changed(MATRIX, "bs=16k")
    assert {job.options["bs"] for job in profile.jobs if "bs" in job.options} == {"16384"}


def test_limits_for_all_reach_every_role() -> None:
    """What is set without a role holds for those with limits of their own, too."""
    profile = changed(MATRIX, "limits.iops=9", "limits.os.bandwidth=1MB/s")
    assert profile.limits == {
        "*": Limits(iops=9),
        "data": Limits(iops=9),
        "os": Limits(iops=9, bandwidth_bytes_per_s=1e6),
    }
    assert changed(MATRIX, "limits.iops=").limits["os"] == Limits()


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        (MATRIX, "size=1k"),
        (MATRIX, "randread-bs4k.bs=2g"),
        (MATRIX, f"repeat={'9' * 5000}"),
        (MATRIX, f"seed={'9' * 5000}"),
        (MATRIX, "seed=2147483648"),
        (MATRIX, "repeat=\u0663"),
        (MATRIX, "limits.iops=125MB/s"),
        (MATRIX, "limits.dta.iops=5"),
        (MATRIX, "limits.a.b.iops=5"),
        (MATRIX, "limits=5"),
        (MATRIX, "nosuch="),
        (MATRIX, ".bs=4k"),
        (MATRIX, "o.=4k"),
        (MATRIX, "o.role=data"),
        (MATRIX, "jobs=1"),
        (MATRIX, "sections.s.bs=4k"),
    ],
)
def test_invalid_settings_are_refused(text: str, setting: str) -> None:
    """The message quotes the setting, and there is a hint."""
    with pytest.raises(InputError) as caught:
        changed(text, setting)
    assert setting in caught.value.message
    assert caught.value.hint


def test_settings_that_are_invalid_alone_may_be_valid_together() -> None:
    """Only the outcome of all settings is judged."""
    profile = changed(MATRIX, "size=1k", "bs=512", "o.bs=512")
    assert profile.defaults["size"] == "1024"
