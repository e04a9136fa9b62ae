"""Plan of clients that read one shared file, which is written once on each host."""

import pytest
import yaml

from tests.plan.expansion.planned_clients import LOCAL, MIB, VM1, VM2, device, folder
from tests.plan.loading import load
from volbench.errors import InputError
from volbench.fio.jobs.render_job import lays_out, render, writes
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Phase
from volbench.plan.expansion.estimate import estimate, layout_bytes
from volbench.plan.expansion.expand import Terms
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients

STORM = """
name: storm
defaults: {rw: randread, runtime: 10s, time_based: 1, ioengine: libaio, direct: 1, iodepth: 4}
phases:
  precondition:
    fill: {rw: write, size: 1m, filename: fill, runtime: null, time_based: null}
jobs:
  vm:
    shared: base
    sections:
      boot: {filename: base, size: 4m, refill_buffers: 1}
      late: {filename: base, size: 4m, offset: 2m}
      overlay: {filename: overlay, size: 1m, rw: randrw}
"""


def on_hosts(count: int, text: str = STORM) -> Campaign:
    """Return the plan for clients on two hosts."""
    hosts = [Client(VM1, 0, folder()), Client(VM2, 0, folder())]
    return expand_clients([load(text)], clients_of(hosts, count), Terms(seed=1))


def files(run: Run) -> list[str]:
    """Return the names of a run's files."""
    return [path.removeprefix("/data/") for path in planned_files(run)]


def test_the_first_client_of_each_host_writes_the_file_first() -> None:
    """Other clients have no run in that step, and every reader waits for its end."""
    runs = on_hosts(4).runs
    layouts = [run for run in runs if run.step == 1]
    assert [run.id for run in layouts] == [
        "001-lay-out-base-r1-vm01-c01",
        "001-lay-out-base-r1-vm02-c01",
    ]
    assert {run.phase for run in layouts} == {Phase.PRECONDITION}
    assert [files(run) for run in layouts] == [["base"], ["base"]]
    readers = [run for run in runs if run.phase is Phase.MEASURED]
    assert [files(run) for run in readers[:2]] == [["base", "c01-overlay"], ["base", "c02-overlay"]]
    assert all(run.in_turn for run in readers)
    assert [run.step for run in runs] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3]


def test_the_file_is_written_to_the_last_byte_that_is_read() -> None:
    """It is written sequentially, with the content of the readers, and by no option of theirs."""
    (layout, *_) = on_hosts(2).runs
    (section,) = layout.sections
    assert layout.effective(section) == {
        "rw": "write",
        "bs": str(MIB),
        "size": str(6 * MIB),
        "filename": "base",
        "ioengine": "libaio",
        "direct": "1",
        "refill_buffers": "1",
        "fallocate": "none",
        "end_fsync": "1",
    }


def test_readers_never_create_the_file() -> None:
    """Fio would lay it out once more for each client, at the same time."""
    *_, run = on_hosts(2).runs
    _, _, *parts = render(run).split("\n[")
    assert ["allow_file_create=0" in part for part in parts] == [True, True, False]
    assert layout_bytes(run) == MIB
    (plain,) = (section for section in run.sections if section.name == "boot")
    alone = run.model_copy(update={"sections": (plain,)})
    assert not writes(alone)
    assert not lays_out(alone)


def test_the_file_is_counted_once_for_a_host() -> None:
    """Of four clients on two hosts two write it; each lays its own file out."""
    text = STORM.replace("rw: randrw", "rw: randread")
    fills = 4 * MIB
    assert estimate(on_hosts(4, text)).bytes_written == 2 * 6 * MIB + 4 * MIB + fills


def test_a_setting_shares_a_file_or_gives_each_client_its_own() -> None:
    """So that both can be compared with one profile."""
    own = load(STORM, "vm.shared=")
    assert [job.name for job in own.jobs if job.shared] == []
    clients = clients_of([Client(LOCAL, 0, folder())], 2)
    *_, run = expand_clients([own], clients, Terms(seed=1)).runs
    assert files(run) == ["c02-base", "c02-overlay"]
    again = load(yaml.safe_dump(own.document()), "vm.shared=base")
    assert again == load(STORM)
    assert load(yaml.safe_dump(again.document())) == again


def test_a_device_has_no_files_to_share() -> None:
    """The error names the volume and what to pass instead."""
    clients = clients_of([Client(LOCAL, 0, device(64 * MIB))], 2)
    with pytest.raises(
        InputError, match=r"base is a file .* /dev/sdx is not a directory"
    ) as caught:
        expand_clients([load(STORM)], clients, Terms(seed=1))
    assert "--on data=DIR" in str(caught.value.hint)
