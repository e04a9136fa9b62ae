"""``latency_log``: read, dumped, set, and asked of fio."""

from __future__ import annotations

import pytest

from volbench.errors import InputError, ProfileError
from volbench.fio.jobs.option_table import shipped_table
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.profile.load_profile import dump_profile, load_profile

PLAIN = "name: p\nsample: 500ms\njobs:\n  a: {rw: read, size: 1m}\n"
LOGGED = PLAIN.replace("sample", "latency_log: true\nsample")


def load(text: str, *settings: str) -> Profile:
    """Read a profile."""
    return load_profile(text, path="p.yaml", table=shipped_table(), settings=settings)


def job_file(profile: Profile) -> list[str]:
    """Return the lines of the job file of its only run."""
    volumes = {"data": Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")}
    (run,) = expand([profile], volumes, Terms(name="c")).runs
    return render(run).splitlines()


def test_fio_logs_histograms_at_every_sample() -> None:
    """Only where the profile says so, and as often as the other logs."""
    assert {"write_hist_log=series", "log_hist_msec=500"} <= {*job_file(load(LOGGED))}
    assert not any("hist" in line for line in job_file(load(PLAIN)))


def test_dump_and_settings_keep_it() -> None:
    """What a campaign keeps of its profile is the profile; --set changes it."""
    assert load(dump_profile(load(LOGGED))) == load(LOGGED)
    for setting, wanted in (("latency_log=true", True), ("latency_log=no", False)):
        changed = load(PLAIN, setting)
        assert changed.latency_log is wanted


def test_without_samples_there_is_nothing_to_log() -> None:
    """A contradiction is told before anything runs, wherever it comes from."""
    with pytest.raises(ProfileError, match="sample is 0"):
        load(LOGGED.replace("500ms", "0"))
    with pytest.raises(InputError, match="sample is 0"):
        load(LOGGED, "sample=0")
