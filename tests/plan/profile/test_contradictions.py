"""Settings that can't work together are told before anything runs."""

import pytest

from tests.plan.loading import TABLE, load
from volbench.errors import InputError
from volbench.model.profile.profile_model import Options
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.profile.load_profile import load_profile

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
    assert options_after(BOTH, "size=64k", "bs=4k") == {
        "bs": "4096",
        "rw": "read",
        "size": "65536",
    }


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
