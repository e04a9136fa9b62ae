"""One plan for many clients: names, starts, seeds, limits, and a part of the volume for each."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.plan.expansion.planned_clients import LOCAL, MIB, VM1, VM2, device, folder
from tests.plan.loading import load
from volbench.errors import InputError
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.host import Host, Policy
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.profile.profile_model import Phase, Start
from volbench.model.profile.profile_settings import Limits
from volbench.plan.expansion.estimate import CAMPAIGN_S, deadline_s, estimate
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.expansion.extents import Basis
from volbench.plan.expansion.multi_client import Client, client_numbers, clients_of, expand_clients

TERMS = Terms(name="c", seed=1)
STORM = """
name: storm
start: staggered
stagger: 20s
limits: {iops: 1100}
phases: {precondition: {fill: {rw: write, size: 1m}}}
jobs:
  boot:
    size: 1m
    filename: disk
    sections: {up: {rw: randread, runtime: 60s}, after: {rw: randrw, runtime: 5m, wait_for: up}}
"""


def planned(text: str, *clients: Client, repeat: int | None = None) -> Campaign:
    """Expand a profile over clients."""
    return expand_clients([load(text)], clients, Terms(name="c", seed=1, repeat=repeat))


def two_hosts(count: int) -> Sequence[Client]:
    """Return clients that are spread over two hosts."""
    return clients_of([Client(VM1, 0, folder()), Client(VM2, 0, folder())], count)


def here(volumes: Mapping[str, Volume], count: int) -> Sequence[Client]:
    """Return clients of this machine."""
    return clients_of([Client(LOCAL, 0, volumes)], count)


def job(options: str) -> str:
    """Return a profile with one job."""
    return f"name: x\njobs: {{a: {{{options}}}}}\n"


def test_one_local_client_has_the_plan_it_always_had() -> None:
    """Without inventory and clients nothing changes: ids, steps, seeds, all of it."""
    profile = load(STORM)
    (client,) = here(folder(), 1)
    assert expand_clients([profile], [client], TERMS) == expand([profile], folder(), TERMS)


def test_ids_contain_step_job_repeat_and_client() -> None:
    """Runs stand step by step, in each of them as the clients do."""
    several = planned(STORM, *here(folder(), 2), repeat=2)
    ids = [run.id for run in several.runs]
    assert ids[:3] == ["001-fill-r1-c01", "001-fill-r1-c02", "002-boot-r1-c01"]
    assert ids[-1] == "003-boot-r2-c02"
    assert [run.step for run in several.runs] == [1, 1, 2, 2, 3, 3]
    hosts = planned(STORM, *two_hosts(2))
    assert [run.id for run in hosts.runs][2:] == ["002-boot-r1-vm01", "002-boot-r1-vm02"]
    both = planned(STORM, *two_hosts(4))
    assert [run.id for run in both.runs][-1] == "002-boot-r1-vm02-c02"


def test_host_and_client_of_each_run_are_reported() -> None:
    """Hosts stand in the plan with their labels; this machine alone needs no entry."""
    both = planned(STORM, *two_hosts(4))
    assert both.hosts == (VM1, VM2)
    last = [(run.host, run.client) for run in both.runs if run.step == 2]
    assert last == [("vm01", 1), ("vm01", 2), ("vm02", 1), ("vm02", 2)]
    assert planned(STORM, *here(folder(), 2)).hosts == ()
    quorum = expand_clients(
        [load(STORM)],
        clients_of([Client(VM1, 0, folder())], 1),
        replace(TERMS, policy=Policy.QUORUM, quorum=1),
    )
    assert (quorum.policy, quorum.quorum) == (Policy.QUORUM, 1)


@pytest.mark.parametrize(
    ("hosts", "count", "numbers"),
    [
        (1, 3, [(1, 2, 3)]),
        (3, 3, [(0,), (0,), (0,)]),
        (3, 1, [(0,), (0,), (0,)]),
        (2, 5, [(1, 2, 3), (1, 2)]),
        (2, 3, [(1, 2), (0,)]),
    ],
)
def test_clients_are_spread_evenly(hosts: int, count: int, numbers: list[tuple[int, ...]]) -> None:
    """Thirty are thirty on one machine and one on each of thirty; no host has nothing to do."""
    assert client_numbers(hosts, count) == numbers


def test_measured_jobs_are_staggered_and_preparation_is_not() -> None:
    """Client i starts i x stagger later, over all hosts."""
    runs = planned(STORM, *two_hosts(4)).runs
    reported = {(run.phase, run.start, run.start_offset_s) for run in runs if run.step == 1}
    assert reported == {(Phase.PRECONDITION, Start.TOGETHER, 0.0)}
    assert [run.start_offset_s for run in runs if run.step == 2] == [0.0, 20.0, 40.0, 60.0]
    assert {run.start for run in runs if run.step == 2} == {Start.STAGGERED}
    text = job("rw: read, size: 1m, runtime: 1s, time_based: 1, within: p99 < 1s")
    with pytest.raises(InputError, match="adds up the rates of clients that run together"):
        planned(f"{text}start: sequential\n", *two_hosts(4))


def test_hosts_of_several_turns_have_steps_of_their_own() -> None:
    """Those of a turn share a step, and their delays; turns alternate from block to block."""
    hosts = [Host(name=name, turn=turn) for name, turn in [("a", 1), ("b", 1), ("c", 2)]]
    text = f"{job('rw: read, size: 1m')}start: staggered\nstagger: 5s\n"
    runs = planned(text, *(Client(host, 0, folder()) for host in hosts), repeat=2).runs
    assert [(run.host, run.step, run.start_offset_s) for run in runs if run.repeat == 1] == [
        ("a", 1, 0.0),
        ("b", 1, 5.0),
        ("c", 2, 0.0),
    ]
    assert [(run.host, run.step, run.block) for run in runs if run.repeat == 2] == [
        ("c", 3, 2),
        ("a", 4, 2),
        ("b", 4, 2),
    ]
    assert all(run.in_turn for run in runs)
    alike = [Client(Host(name=name, turn=1), 0, folder()) for name in "ab"]
    assert not any(run.in_turn for run in planned(text, *alike).runs)


def test_measured_jobs_run_with_each_number_of_clients() -> None:
    """One after another, in reverse in every second repeat; all clients prepare their files."""
    clients = two_hosts(4)
    terms = replace(TERMS, repeat=2, client_counts=(1, 2, 4))
    plan = expand_clients([load(STORM)], clients, terms)
    steps = [[*runs] for _, runs in itertools.groupby(plan.runs, key=lambda run: run.step)]
    jobs = [f"boot-clients{count}" for count in (1, 2, 4, 4, 2, 1)]
    assert [runs[0].job for runs in steps] == ["fill", *jobs]
    assert [len(runs) for runs in steps] == [4, 1, 2, 4, 4, 2, 1]
    assert {run.client_name for run in steps[2]} == {"vm01 client 1", "vm02 client 1"}
    assert all(run.in_turn for run in plan.runs)
    with pytest.raises(InputError, match="--client-counts 1,2,5: there are only 4 clients"):
        expand_clients([load(STORM)], clients, replace(terms, client_counts=(1, 2, 5)))


@pytest.mark.parametrize(
    ("options", "shared", "own"),
    [
        ("size: 1m, rw: read", "c01.a.0.0", "a.0.0"),
        ("size: 1m, rw: read, filename: f", "c01-f", "f"),
    ],
)
def test_each_number_of_clients_uses_the_same_files(options: str, shared: str, own: str) -> None:
    """A volume has no room for a set of files for each number, and new ones would be laid out."""
    terms = replace(TERMS, client_counts=(1, 2))
    for clients, file in (
        (clients_of([Client(VM1, 0, folder())], 2), shared),
        ([Client(VM1, 0, folder()), Client(VM2, 0, folder())], own),
    ):
        plan = expand_clients([load(job(options))], clients, terms)
        first = [planned_files(run) for run in plan.runs if run.client_name.endswith(("01", " 1"))]
        assert len(first) == 2
        assert all([name.rpartition("/")[2] for name in names] == [file] for names in first)


def test_no_two_clients_read_the_same_offsets() -> None:
    """Seeds differ from client to client and from repeat to repeat, and stay with the seed."""
    clients = two_hosts(6)
    runs = planned(STORM, *clients, repeat=3).runs
    assert len({run.seed for run in runs}) == len(runs)
    assert runs == planned(STORM, *clients, repeat=3).runs


def test_limits_of_a_host_come_before_those_of_the_profile() -> None:
    """What is known of one machine's volume is nearer than what the profile assumes."""
    runs = planned(STORM, *two_hosts(2)).runs
    assert [run.limits.iops for run in runs if run.step == 2] == [1100, 7]


def test_declared_limits_come_before_those_of_an_origin() -> None:
    """What a storage class says applies only where nothing is declared."""
    of_class = Limits(iops=500, origin="StorageClass fast")
    host = VM1.model_copy(update={"limits": {"*": of_class}})
    runs = planned(STORM, *clients_of([Client(host, 0, folder())], 1)).runs
    assert {run.limits.iops for run in runs if run.step == 2} == {1100}
    plain = planned(job("rw: read, size: 1m"), *clients_of([Client(host, 0, folder())], 1)).runs
    assert {run.limits for run in plain} == {of_class}


def test_shuffled_order_is_the_same_everywhere() -> None:
    """Clients meet at a barrier before each step, so all of them do the same job in it."""
    names = ", ".join(f"j{n}: {{rw: read, size: 1m}}" for n in range(8))
    text = f"name: x\norder: shuffled\njobs: {{{names}}}\n"
    runs = planned(
        text, *clients_of([Client(VM1, 0, folder()), Client(VM2, 0, folder("/other"))], 4)
    ).runs
    jobs = {step: {run.job for run in runs if run.step == step} for step in range(1, 9)}
    assert [len(found) for found in jobs.values()] == [1] * 8
    assert [next(iter(found)) for found in jobs.values()] != [f"j{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ("rw: write, size: 1m", "c01.a.0.0"),
        ("rw: write, size: 1m, numjobs: 2", "c01.a.0.0"),
        ("rw: write, size: 1m, filename: 'x:y'", "c01-x"),
        ("rw: write, size: 1m, filename_format: $jobname-$filenum", "c01.a-0"),
    ],
)
def test_each_client_in_a_directory_has_its_own_files(options: str, first: str) -> None:
    """The guard is told exactly those files, and the job file names them."""
    runs = planned(job(options), *here(folder(), 3)).runs
    files = [planned_files(run) for run in runs]
    assert files[0][0] == f"/data/{first}"
    assert len({path for own in files for path in own}) == sum(map(len, files))
    assert "filename" in render(runs[0])


def test_files_are_not_renamed_where_a_client_is_alone() -> None:
    """Hosts, and clients with directories of their own, don't share anything."""
    runs = planned(job("rw: write, size: 1m"), *two_hosts(2))
    assert {planned_files(run) for run in runs.runs} == {("/data/a.0.0",)}
    apart = [Client(LOCAL, 1, folder("/one")), Client(LOCAL, 2, folder("/two"))]
    assert [planned_files(run)[0] for run in planned(job("size: 1m"), *apart).runs] == [
        "/one/a.0.0",
        "/two/a.0.0",
    ]


def ranges(campaign: Campaign) -> list[tuple[int, int]]:
    """Return where each run begins and ends on its device."""
    found = []
    for run in campaign.runs:
        for section in run.sections:
            options = run.effective(section)
            start = int(options["offset"])
            found.append((start, start + int(options["size"])))
    return found


@pytest.mark.parametrize("clients", [2, 3, 30])
def test_a_device_is_divided_into_separate_slices(clients: int) -> None:
    """Slices are whole MiB, equal, in order, and within the device."""
    campaign = planned(job("rw: randwrite"), *here(device(1000 * MIB + 513), clients))
    found = ranges(campaign)
    assert len(found) == clients
    assert all(start % MIB == 0 and end % MIB == 0 for start, end in found)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(found))
    assert found[-1][1] <= 1000 * MIB
    assert found[-1][1] > 1000 * MIB - clients * MIB


@pytest.mark.parametrize(
    ("size", "expected"), [("size: 2m", 2 * MIB), ("size: 50%", 50 * MIB), ("bs: 4k", 100 * MIB)]
)
def test_size_is_relative_to_the_slice(size: str, expected: int) -> None:
    """A size in bytes stays as it is, one in percent is of the client's own part."""
    campaign = planned(job(size), *here(device(200 * MIB), 2))
    assert ranges(campaign) == [(0, expected), (100 * MIB, 100 * MIB + expected)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("offset: 4k", "sets offset"),
        ("offset_increment: 1m, numjobs: 2", "jobs in parallel would leave"),
        ("fill_device: 1, rw: write", "beyond the slice"),
        ("size: 101m", "does not fit a slice of 104857600 bytes"),
    ],
)
def test_jobs_that_would_leave_their_slice_are_refused(options: str, words: str) -> None:
    """Two clients that write the same blocks would measure something else."""
    with pytest.raises(InputError, match=words) as caught:
        planned(job(options), *here(device(200 * MIB), 2))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "target"), [(VolumeKind.FILE, "/f"), (VolumeKind.NBD, "nbd://h/x")]
)
def test_a_file_and_an_export_are_not_shared_out(kind: VolumeKind, target: str) -> None:
    """The hint says what can be; one client alone may have them."""
    volumes = {"data": Volume(role="data", kind=kind, target=target)}
    with pytest.raises(InputError, match="cannot share") as caught:
        planned(job("size: 1m"), *clients_of([Client(LOCAL, 0, volumes)], 2))
    assert "directory" in caught.value.hint
    both = [Client(VM1, 0, volumes), Client(VM2, 0, volumes)]
    assert len(planned(job("size: 1m"), *both).runs) == 2


def test_a_device_of_less_than_a_mib_each_is_refused() -> None:
    """A slice of nothing would be all of the device to fio."""
    with pytest.raises(InputError, match="less than 1 MiB"):
        planned(job("rw: read"), *here(device(MIB), 2))


WARMING = """
name: x
phases: {warmup: {fill: {warming: {mode: write, extents: 2}, size: 256m}}}
jobs: {a: {rw: read, size: 1m}}
"""


def test_a_shared_device_is_warmed_once_by_the_first_client() -> None:
    """Every block is touched once; the others wait for it at the next step."""
    runs = planned(WARMING, *here(device(256 * MIB), 3)).runs
    warming = [run for run in runs if run.extent]
    assert {run.client for run in warming} == {1}
    written = [run.extent for run in warming if run.extent and run.extent.direction == "write"]
    assert sum(extent.size_bytes for extent in written) == 256 * MIB
    assert [run.client for run in runs if run.job == "a"] == [1, 2, 3]


def test_files_in_a_directory_are_warmed_by_each_client() -> None:
    """A file of one client does not warm that of another."""
    runs = planned(WARMING, *here(folder(), 2)).runs
    files = {run.client: planned_files(run) for run in runs if run.extent}
    assert files == {1: ("/data/c01-fill.warm",), 2: ("/data/c02-fill.warm",)}


def test_hosts_with_more_to_warm_have_more_steps() -> None:
    """All hosts meet again at the same job, whatever the sizes of their volumes."""
    text = "name: x\nphases: {warmup: {w: {warming: read}}}\njobs: {a: {rw: read}}\n"
    sizes = (256 * MIB, 512 * MIB)
    clients = [
        Client(host, 0, device(size), {"data": Basis(size)})
        for host, size in zip((VM1, VM2), sizes, strict=True)
    ]
    runs = planned(text, *clients).runs
    last = {run.host: run.step for run in runs if run.job == "a"}
    extents = {host: [r.step for r in runs if r.host == host and r.extent] for host in last}
    assert last["vm01"] == last["vm02"]
    assert len(extents["vm01"]) < len(extents["vm02"])
    assert extents["vm01"] == extents["vm02"][: len(extents["vm01"])]


def test_time_of_a_step_is_that_of_its_last_client() -> None:
    """Clients run side by side; one after another only when they are told so."""
    clients = two_hosts(4)
    storm = planned(STORM, *clients)
    fill_s = 256 / 7  # 1 MiB in blocks of 4 KiB on the slower host
    assert estimate(storm).total_s == pytest.approx(CAMPAIGN_S + fill_s + 60 + 360, abs=3)
    text = STORM.replace("start: staggered\nstagger: 20s", "start: sequential")
    in_turn = estimate(planned(text, *clients))
    assert in_turn.total_s == pytest.approx(CAMPAIGN_S + fill_s + 4 * 360, abs=3)
    assert deadline_s(storm.runs[-1], grace_s=0) > 360


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        ([], "no client"),
        ([Client(VM1, 0, folder()), Client(VM1, 0, folder())], "two clients with the number 0"),
        ([Client(VM1, 0, folder()), Client(VM2, 0, {})], "host vm02 has no volume"),
    ],
)
def test_impossible_sets_of_clients_are_refused(clients: list[Client], words: str) -> None:
    """Nobody, the same one twice, and one without a volume."""
    with pytest.raises(InputError, match=words):
        planned(STORM, *clients)


@pytest.mark.parametrize("options", ["rw: randread", "rw: randread, size: 50%"])
def test_new_files_need_a_size(options: str) -> None:
    """A run would fail in fio; a device has a size of its own, and a null engine needs none."""
    client = Client(LOCAL, 0, folder())
    with pytest.raises(InputError, match="job a has no size, which") as caught:
        planned(job(options), client)
    assert "--set size=1g" in caught.value.hint
    assert planned(job(options), Client(LOCAL, 0, device(MIB))).runs
    assert planned(job(f"{options}, ioengine: 'null'"), client).runs
    assert planned(job("rw: write, fill_device: 1"), client).runs


def test_mmap_begins_at_the_first_byte() -> None:
    """It ignores an offset (fio 3.33), which other clients, jobs and extents have, too."""
    volume = Client(LOCAL, 0, device(64 * MIB))
    for options in ("offset: 8m", "size: 1m, numjobs: 2, offset_increment: 4m", "offset: 50%"):
        with pytest.raises(InputError, match="fio's ioengine mmap ignores"):
            planned(job(f"rw: write, ioengine: mmap, {options}"), volume)
    assert planned(job("rw: write, ioengine: mmap, offset: 0%, size: 1m"), volume).runs
