"""Overrides: what they reach, what they leave, what they refuse, and whose they are."""

import pytest

from tests.plan.loading import TABLE, load
from volbench.errors import InputError
from volbench.model.profile.profile_model import Options
from volbench.model.profile.profile_settings import Limits
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.profile.load_profile import load_profile
from volbench.plan.profile.profile_edits import settings_by_profile

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
        *("sections.s.bs=4k", "randread-bs4k.bs=2g", f"size={'9' * 5000}"),
    ],
)
def test_invalid_settings_are_refused(setting: str) -> None:
    """The message quotes the setting, or the start of a long one, and there is a hint."""
    with pytest.raises(InputError) as caught:
        load(MATRIX, setting)
    assert setting[:200] in caught.value.message
    assert len(caught.value.message) < 1000
    assert caught.value.hint


def test_settings_that_are_invalid_alone_may_be_valid_together() -> None:
    """Only the outcome of all settings is judged."""
    profile = load(MATRIX, "size=1k", "bs=512", "o.bs=512")
    assert profile.defaults["size"] == "1024"


ROUNDS = """
name: in-rounds
rounds: {max: 25, track: [writes.iops]}
defaults: {size: 1m}
jobs: {writes: {rw: randwrite}, reads-512: {rw: randread, bs: 512}}
"""
PLAIN = "name: plain\ndefaults: {size: 1m}\njobs: {histogram: {rw: randwrite}}\n"


@pytest.mark.parametrize(
    ("setting", "places"),
    [
        ("size=64m", (0, 1)),
        ("rounds.max=6", (0,)),
        ("writes.bs=8k", (0,)),
        ("histogram.until=steady", (1,)),
        ("*-512=", (0,)),
        ("histogram=", (1,)),
        ("runtime=", (0, 1)),
        ("nothing.bs=8k", (0, 1)),
        ("no equals sign", (0, 1)),
    ],
)
def test_each_setting_reaches_the_profiles_that_have_its_key(
    setting: str, places: tuple[int, ...]
) -> None:
    """What no profile has stays with all of them, whose errors then tell the mistake."""
    found = settings_by_profile([load(ROUNDS), load(PLAIN)], [setting])
    assert tuple(place for place, own in enumerate(found) if own) == places


def test_the_order_of_settings_is_kept() -> None:
    """Later settings hold over earlier ones, as they were typed."""
    settings = ["size=2m", "writes.size=3m", "size=4m"]
    assert settings_by_profile([load(ROUNDS), load(PLAIN)], settings) == [
        settings,
        ["size=2m", "size=4m"],
    ]


BOTH = "name: x\njobs: {a: {rw: write, bs: 1m, size: 64m}, d: {rw: read, bs: 1m, size: 64m}}\n"


def options_after(text: str, *settings: str) -> Options:
    """Return the options of the last job after settings."""
    return load(text, *settings).jobs[-1].options


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (BOTH, ["size=64k"]),
        (BOTH, ["a.bs=128m"]),
        (BOTH, ["a.direct=1", "a.bs=1000"]),
        (BOTH, ["rate=1m", "rate_iops=10"]),
    ],
)
def test_contradictions_are_reported_before_the_run(text: str, settings: list[str]) -> None:
    """Fio would fail only when it runs; the message names settings and job."""
    with pytest.raises(InputError) as caught:
        options_after(text, *settings)
    assert all(f"--set {setting}" in caught.value.message for setting in settings)
    assert ": job " in caught.value.message


def test_settings_that_fit_only_together() -> None:
    """What a later setting puts right is no contradiction."""
    assert options_after(BOTH, "size=64k", "bs=4k") == {"bs": "4096", "rw": "read", "size": "65536"}


def test_programs_need_consent_in_settings_too() -> None:
    """What --allow-exec allows in a profile it allows in a setting."""
    setting = "exec_prerun=/bin/true"
    with pytest.raises(InputError) as caught:
        options_after(BOTH, setting)
    assert "--allow-exec" in caught.value.hint
    allowed = load_profile(BOTH, path="p.yaml", table=TABLE, settings=[setting], allow_exec=True)
    assert allowed.defaults["exec_prerun"] == "/bin/true"


@pytest.mark.parametrize("name", profile_names())
def test_every_bundled_profile_shrinks(name: str) -> None:
    """A trial of a minute is possible with any of them."""
    text, path = read_profile(name)
    profile = load_profile(text, path=path, table=TABLE)
    endless = [f"{job.name}.until=" for job in profile.jobs if job.until]
    settings = [*endless, "size=16m", "runtime=1s"]
    small = load_profile(text, path=path, table=TABLE, settings=settings)
    every = [own for job in small.jobs for own in (job.options, *job.sections.values())]
    assert {own["size"] for own in [*every, small.defaults] if "size" in own} == {str(2**24)}
    runtimes = {own["runtime"] for own in [*every, small.defaults] if own.get("runtime")}
    assert runtimes == {"1s"}
