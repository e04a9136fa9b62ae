"""``rounds``: read, dumped, set, planned, and refused."""

import itertools

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.plan.loading import TABLE, load
from volbench.errors import InputError, ProfileError
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.expansion.multi_client import Client, expand_clients
from volbench.plan.profile.load_profile import dump_profile, json_schema

VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/there")
FULL = """
name: full
rounds: {max: 7, until: snia, track: [writes.iops, reads.lat_mean]}
defaults: {size: 64m, runtime: 10s, time_based: 1}
limits: {iops: 300, burst_iops: 3000, burst_ios: 5400000}
phases:
  precondition:
    fill: {rw: write, runtime: null, time_based: null}
  warmup:
    warm: {rw: randwrite}
jobs:
  writes: {rw: randwrite}
  reads: {rw: randread}
"""


def planned(profile: Profile, **terms: int) -> Campaign:
    """Expand a profile."""
    return expand([profile], {"data": VOLUME}, Terms(name="c", seed=1, repeat=terms.get("repeat")))


def test_dumped_rounds_read_back() -> None:
    """A dump holds all of it."""
    assert load(dump_profile(load(FULL))) == load(FULL)


def test_the_schema_has_rounds() -> None:
    """The schema takes what the loader takes, and finds a metric that there is not."""
    schema = Draft202012Validator(json_schema(TABLE))
    yaml = YAML(typ="safe", pure=True)
    assert not list(schema.iter_errors(yaml.load(FULL)))
    assert list(schema.iter_errors(yaml.load(FULL.replace("writes.iops", "writes.speed"))))


def test_rounds_are_planned_up_to_the_maximum() -> None:
    """What is measured, and its warm-ups, are repeated; preparation is done once."""
    campaign = planned(load(FULL))
    assert set(campaign.rounds) == {"full"}
    jobs = [(run.repeat, run.job) for run in campaign.runs]
    each = [*itertools.product(range(1, 8), ("warm", "writes", "reads"))]
    assert jobs == [(1, "fill"), *each]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rounds: {track: [writes.iops]}\nrepeat: 3", "rounds already repeat the jobs"),
        ("rounds: {track: [write.iops]}", "no measured job write"),
        ("rounds: {track: [warm.iops]}", "no measured job warm"),
        ("rounds: {track: [writes.iops, writes.iops]}", "tracked twice"),
        ("rounds: {track: [writes.p99]}", "'writes.p99' is not a tracking"),
        ("rounds: {track: [writes]}", "'writes' is not a tracking"),
        ("rounds: {max: 4, track: [writes.iops]}", "rounds.max: must be at least 5"),
        ("rounds: {max: 9}", "rounds.track: is missing"),
        ("rounds: {track: [writes.iops], until: steady}", "must be snia"),
        ("rounds: {track: [writes.iops], until_: snia}", "until_: unknown key"),
        ("rounds: 5", "rounds: must be a mapping"),
    ],
)
def test_impossible_rounds_are_reported(line: str, words: str) -> None:
    """Each mistake has its own words, at its place."""
    text = FULL.replace(FULL.splitlines()[2], line)
    with pytest.raises(ProfileError, match=words):
        load(text)


def test_overrides_change_rounds() -> None:
    """Each key has its setting, and an empty one takes it away."""
    profile = load(
        FULL,
        "rounds.max=9",
        "rounds.track=reads.bw",
    )
    assert profile.rounds == Rounds(max_rounds=9, track=(Track(job="reads", metric=Metric.BW),))
    plain = load(FULL, "rounds=", "repeat=5")
    assert (plain.rounds, plain.repeats.times) == (None, 5)


@pytest.mark.parametrize(
    "setting",
    [
        "rounds.track=nobody.iops",
        "rounds=5",
        "repeat=3",
        "*=",
        "writes=",
    ],
)
def test_impossible_overrides_are_refused(setting: str) -> None:
    """What would not load is not set either; a tracked job can't be left out."""
    with pytest.raises(InputError):
        load(FULL, setting)


def test_jobs_are_left_out_by_name() -> None:
    """A pattern leaves out all jobs that it fits; an option's name is never a job's."""
    left = load(FULL, "re*=", "rounds=")
    assert [job.name for job in left.jobs] == ["fill", "warm", "writes"]
    assert load(FULL, "time_based=", "runtime=").defaults == {"size": "67108864"}


def test_a_number_of_repeats_is_refused() -> None:
    """The rounds end when they are steady, and --repeat would say something else."""
    with pytest.raises(InputError, match="rounds") as caught:
        planned(load(FULL), repeat=3)
    assert "rounds.max=5" in caught.value.hint


def test_several_clients_are_refused() -> None:
    """Clients are not steady at the same time; a hint says what to do."""
    clients = [Client(Host(name=f"vm{n}", address="x"), 0, {"data": VOLUME}) for n in (1, 2)]
    with pytest.raises(InputError, match="do not become steady at the same time"):
        expand_clients([load(FULL)], clients, Terms(name="c", seed=1))
    entry = expand_clients([load(FULL)], clients[:1], Terms(name="c", seed=1))
    assert set(entry.rounds) == {"full"}
