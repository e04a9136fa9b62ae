"""Replicas after a killed controller, and after the loss of one of them."""

from pathlib import Path

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk, kill
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.model.campaign.planned_run import RunState
from volbench.store.journal import read_history

THREE = ("--storage-class", "fast", "--replicas", "3")
HOSTS = ["fast-0", "fast-1", "fast-2"]


def wait_for_all(desk: Desk) -> None:
    """Wait until the processes of all three runs of the first step were started."""
    journal = desk.folder / "c" / "journal.jsonl"

    def have_started() -> bool:
        records = read_history(journal).processes.values() if journal.exists() else ()
        return sum(bool(record.get("launched", True)) for record in records) >= len(HOSTS)

    until(have_started)


def test_replicas_are_resumed_and_repeated_in_the_same_way(desk: Desk, job: Path) -> None:
    """All are found again in their pods; --like repeats the campaign, and both are compared."""
    process = desk.start("c", str(job), *THREE, "--repeat", "2", "--set", "runtime=10s")
    wait_for_all(desk)
    kill(process)
    done = call("resume", desk.folder / "c")
    assert done.returncode == 0, done.stderr
    assert f"; found again ({len(HOSTS)} runs)" in done.stderr
    campaign = campaign_data(desk.folder / "c")
    assert sorted(campaign.summary()["host"]) == sorted(2 * HOSTS)
    assert list(campaign.frame("aggregate")["clients"]) == [3, 3]
    again = desk.run("d", f"--like={desk.folder / 'c'}", *THREE)
    assert again.returncode == 0, again.stderr
    assert len(campaign_data(desk.folder / "d").summary()) == 6
    compared = call("compare", desk.folder / "c", desk.folder / "d", "--json")
    assert compared.returncode == 0, compared.stderr


def test_one_replica_is_lost(desk: Desk, job: Path) -> None:
    """Resume makes its pod again; the journal says what was lost, and all runs finish."""
    process = desk.start("c", str(job), *THREE, "--set", "runtime=20s")
    wait_for_all(desk)
    name = next(
        pod["metadata"]["name"]
        for pod in desk.api.list("Pod")
        if pod["metadata"]["name"].endswith("-1")
    )
    desk.api.delete("Pod", name, grace_s=0)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 4, errors
    done = call("resume", desk.folder / "c")
    assert done.returncode == 0, done.stderr
    states = read_history(desk.folder / "c" / "journal.jsonl").states
    assert set(states.values()) == {RunState.FINISHED}
    journal = (desk.folder / "c" / "journal.jsonl").read_text()
    assert '"state": "interrupted"' in journal
    assert journal.count("its pod has ended") == 1
