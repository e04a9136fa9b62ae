"""From profiles to runs: order, names, seeds, inheritance."""

import subprocess
from pathlib import Path

import pytest

from tests.fio.plain import FIO
from tests.plan.loading import TABLE, load
from volbench.errors import InputError
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits
from volbench.plan.bundled_files import profile_names, read_profile
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.profile.load_profile import dump_profile, load_profile


def bundled(name: str) -> Profile:
    """Load a bundled profile."""
    text, path = read_profile(name)
    return load_profile(text, path=path, table=TABLE)


def planned(*profiles: Profile, seed: int | None = 1, repeat: int | None = None) -> Campaign:
    """Expand profiles on two folders."""
    volumes = {
        role: Volume(role=role, kind=VolumeKind.DIRECTORY, target=f"/{role}")
        for role in ("data", "os")
    }
    return expand(profiles, volumes, Terms(name="c", seed=seed, repeat=repeat))


PHASES = """
name: x
order: shuffled
phases:
  precondition: {fill: {rw: write}}
  warmup: {warm: {rw: write}}
jobs: {a: {rw: read}, b: {rw: read}, c: {rw: read}, d: {rw: read}, e: {rw: read}}
"""


def test_phases_in_order_and_shuffle_in_blocks() -> None:
    """The precondition comes once, the warm-up before each repeat, and each repeat is complete."""
    jobs = [run.job for run in planned(load(PHASES), repeat=3).runs]
    assert jobs[0] == "fill"
    blocks = [jobs[1:7], jobs[7:13], jobs[13:19]]
    for block in blocks:
        assert block[0] == "warm"
        assert sorted(block[1:]) == ["a", "b", "c", "d", "e"]
    assert len({tuple(block) for block in blocks}) > 1


def test_a_seed_gives_the_same_plan_again() -> None:
    """Order and offsets depend on the seed alone; a drawn seed is recorded."""
    profile = load(PHASES)
    assert planned(profile, seed=5, repeat=4).runs == planned(profile, seed=5, repeat=4).runs
    assert planned(profile, seed=5).runs != planned(profile, seed=6).runs
    drawn = planned(profile, seed=None)
    assert planned(profile, seed=drawn.seed).runs == drawn.runs


def test_ids_are_unique_over_profiles() -> None:
    """Two profiles with the same job names never share a folder."""
    runs = planned(load(PHASES), load(PHASES.replace("name: x", "name: y"))).runs
    assert len({run.id for run in runs}) == len(runs) == 14


def test_a_role_without_volume_names_the_fix() -> None:
    """The message holds the option to add."""
    profile = load("name: x\njobs: {a: {role: log, rw: read}}\n")
    with pytest.raises(InputError) as caught:
        planned(profile)
    assert "--on log=" in caught.value.hint


def test_null_removes_an_inherited_option() -> None:
    """What a job or a section takes away is not in its job file."""
    profile = load(
        "name: x\ndefaults: {runtime: 9s, bs: 8k}\njobs:\n"
        "  a: {rw: read, runtime: null}\n"
        "  b: {sections: {s: {rw: read, bs: null}, t: {rw: write}}}\n"
    )
    a, b = planned(profile).runs
    assert a.effective(a.sections[0]) == {"bs": "8192", "rw": "read"}
    assert b.effective(b.sections[0]) == {"runtime": "9s", "rw": "read"}
    assert b.effective(b.sections[1]) == {"runtime": "9s", "bs": "8192", "rw": "write"}


def test_limits_of_job_role_and_profile() -> None:
    """A job's own limits count before its role's, and these before everybody's."""
    profile = load(
        "name: x\nlimits: {data: {iops: 1}, '*': {iops: 2}}\n"
        "jobs: {a: {rw: read, limits: {iops: 3}}, b: {rw: read}, c: {rw: read, role: os}}\n"
    )
    assert [run.limits for run in planned(profile).runs] == [
        Limits(iops=3),
        Limits(iops=1),
        Limits(iops=2),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", profile_names())
def test_the_bundled_profiles_are_valid(name: str, tmp_path: Path) -> None:
    """Each reads back from its own dump, and fio parses every job file of it."""
    profile = bundled(name)
    assert load(dump_profile(profile)) == profile
    paths = []
    for run in planned(profile).runs:
        if run.repeat == 1:
            paths.append(tmp_path / f"{run.id}.fio")
            paths[-1].write_text(render(run))
    if paths:
        parse = [*FIO, "--parse-only", *map(str, paths)]
        done = subprocess.run(parse, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


OVERRIDDEN = """
name: x
defaults: {size: 1g, runtime: 60s}
phases: {precondition: {fill: {rw: write, runtime: null}}}
jobs:
  a: {rw: read, size: 2g}
  b: {sections: {s: {rw: read, size: 3g}, t: {rw: write}}}
  d: {rw: write, bs: 1m, size: 1g, runtime: null}
"""


def overridden(*settings: str) -> dict[str, dict[str, str]]:
    """Return the options of each section after overrides."""
    runs = planned(load(OVERRIDDEN, *settings)).runs
    return {s.name: run.effective(s) for run in runs for s in run.sections}


def test_an_override_reaches_every_job() -> None:
    """Size and runtime shrink any profile; what was taken away stays away."""
    found = overridden("size=4m", "runtime=2s")
    assert {options["size"] for options in found.values()} == {str(4 * 2**20)}
    assert "runtime" not in found["fill"]
    assert "runtime" not in found["d"]
    assert found["a"]["runtime"] == found["s"]["runtime"] == "2s"


def test_overrides_of_the_profile_itself() -> None:
    """repeat, order, seed, sample and limits are not fio options."""
    profile = load(
        OVERRIDDEN,
        "repeat=2",
        "order=shuffled",
        "seed=9",
        "sample=0",
        "limits.iops=10",
        "limits.data.bandwidth=1MB/s",
    )
    assert (profile.repeats.times, profile.order, profile.seed, profile.sample_s) == (
        2,
        "shuffled",
        9,
        0,
    )
    assert profile.limits["*"].iops == 10
    assert profile.limits["data"].bandwidth_bytes_per_s == 1e6
