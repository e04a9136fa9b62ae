"""``until``, ``device_sample``, ``cold_probe`` and bursts: read, dumped, shown to editors, set."""

import itertools
import json

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.plan.loading import TABLE, load
from volbench.errors import InputError
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits, Until
from volbench.plan.expansion.estimate import estimate
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.profile.load_profile import dump_profile, json_schema

FULL = """
name: full
device_sample: 500ms
cold_probe: true
defaults: {size: 64m, runtime: 30m, time_based: 1}
limits:
  data: {iops: 100, burst_iops: 3000, burst_ios: 5400000}
  os: {bandwidth: 40MB/s, burst_bandwidth: 250MB/s, burst_bytes: 1t}
jobs:
  short: {rw: randread, until: steady}
  long: {rw: randread, role: os, until: {state: steady, window: 10m, block: 30s}}
  fixed: {rw: randread, runtime: 1m}
"""


def untils(profile: Profile) -> dict[str, Until | None]:
    """Return job to when it ends."""
    return {job.name: job.until for job in profile.jobs}


def test_every_new_key_is_read() -> None:
    """Values arrive in seconds, I/Os and bytes."""
    profile = load(FULL)
    assert profile.device_sample_s == 0.5
    assert profile.cold_probe
    assert untils(profile) == {"short": Until(), "long": Until(window_s=600, block_s=30)} | {
        "fixed": None
    }
    assert profile.limits["data"] == Limits(iops=100, burst_iops=3000, burst_ios=5.4e6)
    assert profile.limits["os"] == Limits(
        bandwidth_bytes_per_s=40e6, burst_bandwidth_bytes_per_s=250e6, burst_bytes=2**40
    )


def test_the_schema_accepts_it() -> None:
    """The schema knows the keys, in the file and in the dump of it."""
    validator = Draft202012Validator(json.loads(json.dumps(json_schema(TABLE))))
    for text in (FULL, dump_profile(load(FULL))):
        found = list(validator.iter_errors(YAML(typ="safe", pure=True).load(text)))
        assert not found, found[0].message
    bad = FULL.replace("until: steady", "until: stable")
    assert not validator.is_valid(YAML(typ="safe", pure=True).load(bad))


def test_runs_know_when_to_end() -> None:
    """The plan holds until and the interval of the device's samples; the probe holds each role."""
    volumes = {
        role: Volume(role=role, kind=VolumeKind.NBD, target="nbd://host") for role in ("data", "os")
    }
    campaign = expand([load(FULL)], volumes, Terms(name="c"))
    assert [run.until for run in campaign.runs] == list(untils(load(FULL)).values())
    assert {run.device_sample_s for run in campaign.runs} == {0.5}
    assert campaign.cold_probe_roles == ("data", "os")
    assert estimate(campaign).is_most
    fixed = expand([load(FULL, "short.until=", "long.until=")], volumes, Terms(name="c"))
    assert not estimate(fixed).is_most


def test_settings_reach_every_key() -> None:
    """--set changes what a profile says, and takes it away."""
    profile = load(
        FULL,
        "device_sample=0",
        "cold_probe=false",
        "limits.burst_iops=",
        "limits.data.burst_iops=200",
        "fixed.until=steady",
        "fixed.until.window=20s",
        "fixed.until.block=2s",
        "long.until=",
    )
    assert profile.device_sample_s == 0
    assert not profile.cold_probe
    assert profile.limits["data"].burst_iops == 200
    assert untils(profile) == {
        "short": Until(),
        "long": None,
        "fixed": Until(window_s=20, block_s=2),
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("cold_probe=perhaps", "must be true or false"),
        ("limits.data.iops=", "needs iops"),
        ("limits.data.burst=5", "limits.data.burst: unknown key"),
        ("fixed.until.window=1m", "there is no until"),
        ("runtime=10s", "fit a runtime of 10 s"),
        ("short.runtime=", "needs a runtime"),
        ("nobody.until=steady", "no job 'nobody'"),
    ],
)
def test_impossible_settings_are_refused(settings: str, words: str) -> None:
    """A setting that makes no sense, alone or together with the rest, is told with a way out."""
    with pytest.raises(InputError, match=words) as caught:
        load(FULL, settings)
    assert caught.value.hint


def test_bursts_must_exceed_their_base() -> None:
    """Each burst needs its own base; the one of the other kind does not do."""
    for base, burst in itertools.product(("iops: 100", "bandwidth: 1MB/s"), repeat=2):
        text = f"name: x\nlimits: {{{base}, burst_{burst}}}\njobs: {{a: {{rw: read, size: 1m}}}}\n"
        with pytest.raises(InputError, match=r"needs|above"):
            load(text)
