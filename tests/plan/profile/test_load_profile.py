"""Good profiles: what is written is what is meant."""

import pytest

from tests.plan.loading import load
from volbench.errors import ProfileError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.profile_model import Order, Phase
from volbench.model.profile.profile_settings import Limits
from volbench.plan.profile.load_profile import load_profile


def test_every_key_of_a_profile_is_read() -> None:
    """Each key arrives with its unit and type."""
    profile = load(
        """
name: all
description: >-
  two
  lines
source: {title: T, author: A, year: 2019, url: "https://example.org"}
defaults: {bs: 4k, runtime: 1.5h, direct: true, time_based: yes}
volumes: {data: /data}
repeat: 3
order: shuffled
seed: 7
sample: 500ms
limits: {data: {iops: 1100, bandwidth: 125MB/s}, os: {iops: 120}}
phases:
  precondition:
    fill: {rw: write, runtime: null, time_based: null}
  warmup:
    warm: {rw: randwrite, runtime: 10}
jobs:
  a: {role: os, rw: randread, note: hello, limits: {bandwidth: 1GiB/s}}
"""
    )
    assert profile.description == "two lines"
    assert profile.source is not None
    assert profile.source.year == 2019
    assert profile.defaults == {
        "bs": "4096",
        "runtime": "5400s",
        "direct": "1",
        "time_based": "1",
    }
    assert (profile.repeats.times, profile.order, profile.seed) == (3, Order.SHUFFLED, 7)
    assert profile.sample_s == 0.5
    assert profile.limits["data"] == Limits(iops=1100, bandwidth_bytes_per_s=125e6)
    fill, warm, a = profile.jobs
    assert (fill.phase, warm.phase) == (Phase.PRECONDITION, Phase.WARMUP)
    assert fill.options["runtime"] is None
    assert warm.options["runtime"] == "10s"
    assert (a.role, a.note) == ("os", "hello")
    assert a.limits == Limits(bandwidth_bytes_per_s=float(2**30))


def test_matrix_is_every_combination_but_the_excluded() -> None:
    """Two by three, less one, plus one; names tell the values as written."""
    profile = load(
        "name: x\nmatrix:\n"
        "  rw: [randread, randwrite]\n"
        "  iodepth: [1, 2, 4]\n"
        "  exclude: [{rw: randwrite, iodepth: 4}]\n"
        "  include: [{rw: read, bs: 1m}]\n"
    )
    assert [job.name for job in profile.jobs] == [
        "randread-iodepth1",
        "randread-iodepth2",
        "randread-iodepth4",
        "randwrite-iodepth1",
        "randwrite-iodepth2",
        "read-bs1m",
    ]
    assert profile.jobs[-1].options == {"rw": "read", "bs": "1048576"}


def test_matrix_names_by_template() -> None:
    """A template uses the values as the author wrote them; odd letters are replaced."""
    profile = load(
        'name: x\nmatrix:\n  name: "{rw}-{bs}"\n  rw: [randread]\n  bs: ["4k,8k", 64k]\n'
    )
    assert [job.name for job in profile.jobs] == ["randread-4k_8k", "randread-64k"]


def test_anchors_and_merge_keys() -> None:
    """YAML's own way to share settings works; what a job says itself wins."""
    profile = load("name: x\njobs:\n  a: &base {rw: read, bs: 4k}\n  b: {<<: *base, bs: 8k}\n")
    assert profile.jobs[1].options == {"rw": "read", "bs": "8192"}


@pytest.mark.parametrize(
    "text", ["name: x\r\njobs:\r\n  a: {rw: read}\r\n", "\ufeffname: x\njobs:\n  a: {rw: read}\n"]
)
def test_files_of_other_editors(text: str) -> None:
    """Windows line ends and a byte order mark are no mistake."""
    assert load(text).jobs[0].name == "a"


def test_a_job_may_be_empty() -> None:
    """A job without options takes the defaults."""
    assert load("name: x\ndefaults: {rw: read}\njobs:\n  a:\n  b: {}\n").jobs[0].options == {}


def test_programs_need_consent() -> None:
    """With --allow-exec an option that runs a program is kept."""
    text = "name: x\njobs:\n  a: {rw: read, exec_prerun: /bin/true}\n"
    with pytest.raises(ProfileError):
        load(text)
    assert load(text, allow_exec=True).jobs[0].options["exec_prerun"] == "/bin/true"


def test_wrong_indentation_is_reported_in_plain_english() -> None:
    """Not in those of the parser, such as <block end>."""
    with pytest.raises(ProfileError) as caught:
        load_profile(
            "name: x\njobs:\n  a:\n    rw: read\n   bs: 4k\n", path="p", table=shipped_table()
        )
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (5, "not YAML: the indentation is wrong here")
    assert "same column" in problem.hint


def test_yaml_1_1_booleans_and_octals_are_not_misread() -> None:
    """Times and words that YAML 1.1 would change stay what they are."""
    profile = load("name: on\nlimits: {}\njobs:\n  no: {rw: read, offset: 010}\n")
    assert profile.name == "on"
    assert profile.jobs[0].name == "no"
    assert profile.jobs[0].options["offset"] == "10"
