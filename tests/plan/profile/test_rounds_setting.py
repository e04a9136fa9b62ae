"""``rounds``, ``pause_before`` and ``burst_runtime``: read, dumped, set, planned, and refused."""

from __future__ import annotations

import itertools

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from volbench.errors import InputError, ProfileError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Run, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import BurstRuntime, Metric, Rounds, Track
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.expansion.multi_client import Client, expand_clients
from volbench.plan.profile.load_profile import dump_profile, json_schema, load_profile

TABLE = shipped_table()
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
  reads: {rw: randread, pause_before: 5m, burst_runtime: {factor: 2, max: 1h}}
"""


SMALL = "limits.burst_bytes=1m"


def load(text: str = FULL, *settings: str) -> Profile:
    """Load a profile against the shipped table."""
    return load_profile(text, path="p.yaml", table=TABLE, settings=settings)


def changed(*settings: str, text: str = FULL) -> Profile:
    """Load a profile and override it."""
    return load(text, *settings)


def planned(profile: Profile, **terms: int) -> Campaign:
    """Expand a profile."""
    return expand([profile], {"data": VOLUME}, Terms(name="c", seed=1, repeat=terms.get("repeat")))


def runtime_of(run: Run) -> str | None:
    """Return the runtime of a run's only section."""
    return run.effective(run.sections[0]).get("runtime")


def test_every_key_of_rounds_is_read() -> None:
    """Numbers, variables and times come out as they were meant."""
    profile = load()
    tracked = (
        Track(job="writes", metric=Metric.IOPS),
        Track(job="reads", metric=Metric.LAT_MEAN),
    )
    assert profile.rounds == Rounds(max_rounds=7, track=tracked)
    reads = next(job for job in profile.jobs if job.name == "reads")
    assert reads.pause_before_s == 300
    assert reads.burst_runtime == BurstRuntime(factor=2, max_s=3600)


def test_dumped_rounds_read_back() -> None:
    """A dump holds all of it."""
    assert load(dump_profile(load())) == load()


def test_the_schema_has_rounds_and_pauses() -> None:
    """The schema takes what the loader takes, and finds a metric that there is not."""
    schema = Draft202012Validator(json_schema(TABLE))
    yaml = YAML(typ="safe", pure=True)
    assert not list(schema.iter_errors(yaml.load(FULL)))
    assert list(schema.iter_errors(yaml.load(FULL.replace("writes.iops", "writes.speed"))))


def test_rounds_are_planned_up_to_the_maximum() -> None:
    """What is measured, and its warm-ups, are repeated; preparation is done once."""
    campaign = planned(load())
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


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("{rw: read, burst_runtime: speed}", "must be a number"),
        ("{rw: read, burst_runtime: {factor: 0.5}}", "at least 1"),
        ("{rw: read, runtime: null, burst_runtime: 1.3}", "add runtime"),
        ("{rw: read, burst_runtime: 1.3, sections: {a: {}, b: {}}}", "without sections"),
        ("{rw: read, pause_before: long}", "pause_before"),
    ],
)
def test_jobs_that_can_not_pause_or_run_longer_are_reported(job: str, words: str) -> None:
    """An unknown word, a margin below 1 and a runtime that is not there."""
    text = f"name: x\ndefaults: {{size: 1m, runtime: 5s, time_based: 1}}\njobs:\n  a: {job}\n"
    with pytest.raises(ProfileError, match=words):
        load(text)


def test_overrides_change_rounds_and_waits() -> None:
    """Each key has its setting, and an empty one takes it away."""
    profile = changed(
        "rounds.max=9",
        "rounds.track=reads.bw",
        "pause_before=2s",
        "reads.burst_runtime.max=2h",
        "writes.pause_before=1s",
    )
    jobs = {job.name: job for job in profile.jobs}
    assert profile.rounds == Rounds(max_rounds=9, track=(Track(job="reads", metric=Metric.BW),))
    assert (jobs["reads"].pause_before_s, jobs["writes"].pause_before_s) == (2, 1)
    assert jobs["reads"].burst_runtime == BurstRuntime(factor=2, max_s=7200)
    plain = changed("rounds=", "repeat=5", "reads.burst_runtime=", "reads.pause_before=")
    assert (plain.rounds, plain.repeats.times) == (None, 5)
    assert all(job.burst_runtime is None and not job.pause_before_s for job in plain.jobs)


@pytest.mark.parametrize(
    "setting",
    [
        "rounds.max=4",
        "rounds.track=nobody.iops",
        "rounds.track=reads.p99",
        "rounds=5",
        "rounds.speed=1",
        "repeat=3",
        "reads.burst_runtime=soon",
        "reads.burst_runtime.factor=x",
        "reads.pause_before.min=1s",
        "*=",
        "writes=",
    ],
)
def test_impossible_overrides_are_refused(setting: str) -> None:
    """What would not load is not set either; a tracked job can't be left out."""
    with pytest.raises(InputError):
        changed(setting)


def test_jobs_are_left_out_by_name() -> None:
    """A pattern leaves out all jobs that it fits; an option's name is never a job's."""
    left = changed("dr*=")
    assert [job.name for job in left.jobs] == ["fill", "warm", "writes", "reads"]
    assert changed("time_based=", "runtime=", "reads.burst_runtime=").defaults == {
        "size": "67108864"
    }


def test_a_number_of_repeats_is_refused() -> None:
    """The rounds end when they are steady, and --repeat would say something else."""
    with pytest.raises(InputError, match="rounds") as caught:
        planned(load(), repeat=3)
    assert "rounds.max=5" in caught.value.hint


def test_several_clients_are_refused() -> None:
    """Clients are not steady at the same time; a hint says what to do."""
    clients = [Client(Host(name=f"vm{n}", address="x"), 0, {"data": VOLUME}) for n in (1, 2)]
    with pytest.raises(InputError, match="do not become steady at the same time"):
        expand_clients([load()], clients, Terms(name="c", seed=1))
    entry = expand_clients([load()], clients[:1], Terms(name="c", seed=1))
    assert set(entry.rounds) == {"full"}


@pytest.mark.parametrize(
    ("settings", "runtime"),
    [
        ((), "3600s"),
        (("reads.burst_runtime.max=3h",), "4000s"),
        (("reads.burst_runtime.max=3h", "reads.burst_runtime.factor=1.3"), "2600s"),
        (("reads.burst_runtime.max=1s",), "10s"),
        (("limits.burst_ios=1000",), "10s"),
        (("limits.burst_iops=", "limits.burst_ios="), "10s"),
        (
            ("limits.bandwidth=1MB/s", "limits.burst_bandwidth=2MB/s", "limits.burst_bytes=1m"),
            "3600s",
        ),
    ],
)
def test_the_runtime_lasts_until_the_credits_are_used_up(
    settings: tuple[str, ...], runtime: str
) -> None:
    """5.4 M credits at 3000 less 300 last 2000 s; runtime is the least, most is the most."""
    runs = {run.job: run for run in planned(changed(*settings)).runs}
    assert runtime_of(runs["reads"]) == runtime
    assert runtime_of(runs["writes"]) == "10s"


def test_limits_of_the_host_take_precedence() -> None:
    """A larger volume of another host has credits that last for another time."""
    limits = load().limits["*"].model_copy(update={"burst_ios": 2700000.0})
    host = Host(name="vm1", address="x", limits={"data": limits})
    campaign = expand_clients(
        [load()], [Client(host, 0, {"data": VOLUME})], Terms(name="c", seed=1)
    )
    runs = {run.job: run for run in campaign.runs}
    assert runtime_of(runs["reads"]) == "2000s"
