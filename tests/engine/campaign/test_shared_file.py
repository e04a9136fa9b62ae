"""Clients that read one shared file: real fio processes, and clients that are repeated later."""

import json
from pathlib import Path

import pytest

from tests.engine.campaign.local_runs import execute, run
from volbench.engine.campaign.campaign_state import Settings
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.host_facts import require_fio
from volbench.execute.local import LocalExecutor
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.event import Event, RunStarted
from volbench.model.campaign.host import LOCAL, Host
from volbench.model.campaign.planned_run import Campaign, RunState
from volbench.plan.expansion.expand import Terms
from volbench.plan.expansion.multi_client import Client, clients_of, expand_clients
from volbench.plan.profile.load_profile import load_profile
from volbench.store.consent import seal_of
from volbench.store.journal import Journal
from volbench.store.layout import Layout

pytestmark = pytest.mark.slow

STORM = """
name: storm
sample: 500ms
defaults: {runtime: 1s, time_based: 1, ioengine: psync, rate_iops: 100}
jobs:
  vm:
    shared: base
    sections:
      boot: {filename: base, size: 2m, rw: randread}
      overlay: {filename: overlay, size: 1m, rw: randwrite}
"""


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def a_storm(data: Path) -> Campaign:
    """Return the plan of three clients of this machine."""
    profile = load_profile(STORM, path="p.yaml", table=shipped_table())
    volume = find_volume(LocalExecutor(), role="data", target=str(data))
    clients = clients_of([Client(Host(name=LOCAL), 0, {"data": volume})], 3)
    return expand_clients(
        [profile], clients, Terms(name="c", created_utc="2026-01-01T00:00:00Z", seed=1)
    )


def bytes_of(layout: Layout, run_id: str) -> list[tuple[int, int]]:
    """Return the bytes read and written by each section of a run."""
    jobs = json.loads((layout.run(run_id).path / "fio.json").read_bytes())["jobs"]
    return [(job["read"]["io_bytes"], job["write"]["io_bytes"]) for job in jobs]


def test_clients_read_what_one_has_written(tmp_path: Path, data: Path) -> None:
    """The file is written completely by one run, is only read then, and removed at the end."""
    campaign = a_storm(data)
    layout = run(tmp_path / "c", campaign)
    first, *readers = (entry.id for entry in campaign.runs)
    assert bytes_of(layout, first) == [(0, 2 << 20)]
    assert len(readers) == 3
    for reader in readers:
        boot, overlay = bytes_of(layout, reader)
        assert boot[0] > 0 == boot[1]
        assert overlay[1] > 0 == overlay[0]
    assert list(data.iterdir()) == []


@pytest.mark.parametrize("layout_state", [RunState.FINISHED, RunState.FAILED])
def test_the_file_is_written_again_for_a_client_that_is_repeated(
    tmp_path: Path, data: Path, layout_state: RunState
) -> None:
    """The third client is; the first, which is not, writes the file before it, and nothing else."""
    campaign = a_storm(data)
    layout = run(tmp_path / "c", campaign)
    first, *_, last = campaign.runs
    with Journal(layout.journal, seal_of(layout)) as journal:
        journal.write("run", run=last.id, state=RunState.INTERRUPTED, reason="rebooted")
        journal.write("run", run=first.id, state=layout_state, reason="")
    events: list[Event] = []
    execute(layout, campaign, require_fio(LocalExecutor()), events, settings=Settings())
    started = [event.run.id for event in events if isinstance(event, RunStarted)]
    assert started == [first.id, last.id]
    assert bytes_of(layout, last.id)[0][0] > 0
    assert list(data.iterdir()) == []
