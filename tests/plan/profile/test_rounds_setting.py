"""Settings ``rounds``, ``until`` and ``expect``: read, dumped, shown to editors, set, refused."""

import itertools

import pytest

from tests.plan.loading import load
from volbench.errors import InputError, ProfileError
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.profile.expect_setting import expectations_in
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits, Metric, Rounds, Track, Until
from volbench.plan.expansion.estimate import estimate
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.expansion.multi_client import Client, expand_clients
from volbench.plan.profile.load_profile import dump_profile

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
    profile = load(FULL, "rounds.max=9", "rounds.track=reads.bw")
    assert profile.rounds == Rounds(max_rounds=9, track=(Track(job="reads", metric=Metric.BW),))
    plain = load(FULL, "rounds=", "repeat=5")
    assert (plain.rounds, plain.repeats.times) == (None, 5)


@pytest.mark.parametrize(
    "setting", ["rounds.track=nobody.iops", "rounds=5", "repeat=3", "*=", "writes="]
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


WRITTEN = """
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
    profile = load(WRITTEN)
    assert profile.device_sample_s == 0.5
    assert profile.cold_probe
    assert untils(profile) == {"short": Until(), "long": Until(window_s=600, block_s=30)} | {
        "fixed": None
    }
    assert profile.limits["data"] == Limits(iops=100, burst_iops=3000, burst_ios=5.4e6)
    assert profile.limits["os"] == Limits(
        bandwidth_bytes_per_s=40e6, burst_bandwidth_bytes_per_s=250e6, burst_bytes=2**40
    )


def test_runs_know_when_to_end() -> None:
    """The plan holds until and the interval of the device's samples; the probe holds each role."""
    volumes = {
        role: Volume(role=role, kind=VolumeKind.NBD, target="nbd://host") for role in ("data", "os")
    }
    campaign = expand([load(WRITTEN)], volumes, Terms(name="c"))
    assert [run.until for run in campaign.runs] == list(untils(load(WRITTEN)).values())
    assert {run.device_sample_s for run in campaign.runs} == {0.5}
    assert campaign.cold_probe_roles == ("data", "os")
    assert estimate(campaign).is_most
    fixed = expand([load(WRITTEN, "short.until=", "long.until=")], volumes, Terms(name="c"))
    assert not estimate(fixed).is_most


def test_settings_reach_every_key() -> None:
    """--set changes what a profile says, and takes it away."""
    profile = load(
        WRITTEN,
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
        ("fixed.until.window=1m", "until is not set here"),
        ("runtime=10s", "fit a runtime of 10 s"),
        ("short.runtime=", "needs a runtime"),
        ("nobody.until=steady", "no job 'nobody'"),
    ],
)
def test_impossible_settings_are_refused(settings: str, words: str) -> None:
    """A setting that makes no sense, alone or together with the rest, is told with a way out."""
    with pytest.raises(InputError, match=words) as caught:
        load(WRITTEN, settings)
    assert caught.value.hint


def test_bursts_must_exceed_their_base() -> None:
    """Each burst needs its own base; the one of the other kind does not do."""
    for base, burst in itertools.product(("iops: 100", "bandwidth: 1MB/s"), repeat=2):
        text = f"name: x\nlimits: {{{base}, burst_{burst}}}\njobs: {{a: {{rw: read, size: 1m}}}}\n"
        with pytest.raises(InputError, match=r"needs|above"):
            load(text)


TEXT = """
name: database
defaults: {size: 64m}
expect:
  wal: {fdatasync_p99: "< 10ms"}
  reads: {iops: [">= 3000", "< 9000"], steady: yes}
  "*": {max: "< 1s", error: 0}
jobs:
  wal: {rw: write, fdatasync: 1}
  reads: {rw: randread}
"""


def texts(profile: Profile) -> list[str]:
    """Return the expectations as they are printed."""
    return [expectation.text for expectation in expectations_in(profile.expect)]


def test_expectations_of_a_profile_are_read_and_dumped() -> None:
    """Each job, pattern of jobs, metric and bound is one; a dumped profile has the same."""
    assert texts(load(TEXT)) == [
        "wal.fdatasync_p99 < 10ms",
        "reads.iops >= 3000",
        "reads.iops < 9000",
        "reads.steady = yes",
        "max < 1s",
        "error = 0",
    ]
    again = load(dump_profile(load(TEXT)))
    assert texts(again) == texts(load(TEXT))


def test_settings_change_expectations() -> None:
    """One is replaced, removed or added; those of a removed job go with it."""
    assert "reads.iops >= 10" in texts(load(TEXT, "expect.reads.iops=>= 10"))
    assert texts(load(TEXT, "expect=")) == []
    assert "wal.iops > 5" in texts(load(TEXT, "expect.wal.iops=> 5"))
    assert not any(text.startswith("wal.") for text in texts(load(TEXT, "wal=")))
