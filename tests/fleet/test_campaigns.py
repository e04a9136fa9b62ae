"""Campaigns on real hosts while things go wrong: every run accounted for, none twice, no orphan."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

import volbench
from tests.fleet.desk import (
    RUNTIME_S,
    SECOND_BYTES,
    Desk,
    check_clean,
    check_once,
    ended,
    gate_has,
    heard,
)
from tests.fleet.hosts import Fleet, fleet
from tests.held_fio import held_on, release
from tests.waiting import PATIENCE_S, until
from volbench.api.one_campaign import campaign_data

pytestmark = pytest.mark.root


@pytest.fixture(name="hosts", scope="module")
def _hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(3, tmp_path_factory.mktemp("campaigns") / "f") as found:
        yield found


def test_a_campaign_runs_on_three_hosts(desk: Desk) -> None:
    """All results come home, each step starts together, and the hosts are as they were."""
    desk.prepare()
    ended(desk.run())
    check_once(desk)
    check_clean(desk.fleet.hosts)
    for step in ("001", "002"):
        paths = desk.out.glob(f"runs/{step}-*/status.json")
        starts = [json.loads(path.read_text())["start"] for path in paths]
        assert len({start["start_s"] for start in starts}) == 1


def test_a_cable_is_pulled_for_a_while(desk: Desk) -> None:
    """Fio goes on where it ran; the controller waits, says so once, and misses nothing."""
    desk.prepare()
    waits = "it waits for vm1, for an unknown time"
    with held_on(desk.fleet.hosts, "^.a.$"):
        process = desk.run()
        until(lambda: all(gate_has(host, "woke") for host in desk.fleet.hosts))
        desk.fleet[1].link(up=False)
        printed = heard(process, "vm1 has not answered for")
        release(desk.fleet[0], desk.fleet[2], written_bytes=RUNTIME_S * SECOND_BYTES)
        until(lambda: ended(desk.start("status", desk.out)).count("finished, waits for vm1") == 2)
        shown = ended(desk.start("status", desk.out))
        assert waits in shown
        assert (shown.count("no answer for"), "IOPS" in shown) == (1, False), shown
        release(desk.fleet[1], written_bytes=RUNTIME_S * SECOND_BYTES)
        desk.fleet[1].link(up=True)
        printed += ended(process)
    assert printed.count("vm1 has not answered for") == 1
    assert printed.count("vm1 answers again after") == 1
    check_once(desk)
    check_clean(desk.fleet.hosts)


SEEDS = range(50 if os.environ.get("VOLBENCH_LONG") else 2)
"""Instants at which the controller is killed; VOLBENCH_LONG=1 asks for the long suite."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_controller_is_killed_at_any_instant(desk: Desk, seed: int) -> None:
    """A resume finds what went on without it, runs nothing twice, and leaves nothing behind."""
    desk.prepare()
    chance = random.Random(seed)  # noqa: S311 - an instant, no secret
    process = desk.run()
    until((desk.out / "journal.jsonl").exists)
    time.sleep(chance.uniform(0, 14))
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    if process.returncode == -signal.SIGKILL:
        ended(desk.start("resume", desk.out))
    check_once(desk)
    check_clean(desk.fleet.hosts)


@pytest.mark.parametrize("later_s", [0.0, 0.2])
def test_the_controller_is_killed_while_it_starts_runs(desk: Desk, later_s: float) -> None:
    """What was about to be started is found if it was, and started if it was not: never twice."""
    desk.prepare()
    process = desk.run()
    until(
        lambda: any(entry.get("process", {}).get("launched") is False for entry in desk.journal())
    )
    time.sleep(later_s)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    ended(desk.start("resume", desk.out))
    check_once(desk)
    check_clean(desk.fleet.hosts)


def test_two_resumes_of_copies_do_not_share_runs(desk: Desk) -> None:
    """At the same time, one goes on and the other is told where; later, it blames no run."""
    desk.prepare()
    process = desk.run()
    until(lambda: desk.started(3))
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    desks = [desk, Desk(desk.folder, desk.fleet, name="copy")]
    shutil.copytree(desk.out, desks[1].out)
    with held_on(desk.fleet.hosts, "^.b.$", before=True):
        resumes = [each.start("resume", each.out) for each in desks]
        until(lambda: any(resume.poll() is not None for resume in resumes))
        release(*desk.fleet.hosts)
        said = [resume.communicate(timeout=3 * PATIENCE_S)[0] for resume in resumes]
    refused = [resume.returncode for resume in resumes].index(7)
    first, second = desks[1 - refused], desks[refused]
    assert f"{second.out} is a copy of {first.out}, where another volbench" in said[refused]
    assert resumes[1 - refused].returncode == 0, said
    check_once(first)
    check_clean(desk.fleet.hosts)
    later = ended(second.start("resume", second.out), status=9)
    assert "has fetched its results" in " ".join(later.split())
    assert set(second.states()) == {"finished", "interrupted"}
    check_once(first)
    check_clean(desk.fleet.hosts)


def test_a_host_that_never_answers_may_be_left_out(desk: Desk) -> None:
    """The others do the campaign, and what they did together says that one is missing."""
    nobody = desk.fleet[0].address.rpartition(".")[0] + ".250"
    desk.prepare(extra=f"  vm9: {{address: {nobody}}}")
    too_few = ended(desk.run("--policy", "quorum:4"), status=4)
    assert "1 of 4 hosts cannot take part: vm9" in too_few
    assert "quorum:9 of 4 clients" in ended(desk.run("--policy", "quorum:9"), status=2)
    assert not desk.out.exists()
    said = ended(desk.run("--policy", "quorum:3"), status=9)
    assert "left out: vm9: vm9 cannot be reached" in said
    assert "1 of 4 clients left out" in said
    assert ended(desk.start("show", desk.out)).startswith("Only 3 of 4 clients took part: vm9 ")
    check_once(desk)
    campaign = volbench.open_campaign(desk.out)
    assert campaign.frame("aggregate")["clients_planned"].tolist() == [4, 4]
    findings = campaign.findings.frame
    (message, _) = findings[findings["rule"] == "missing-clients"]["message"]
    assert message == "Only 3 of 4 clients took part: vm9 did not."


def test_a_host_loses_its_power(desk: Desk) -> None:
    """What ran there is gone and told as that; the host takes part again once it is back."""
    desk.prepare()
    with held_on(desk.fleet.hosts, "^.a.$"):
        process = desk.run("--policy", "best-effort")
        until(lambda: all(gate_has(host, "woke") for host in desk.fleet.hosts))
        desk.fleet[1].power_off()
        release(desk.fleet[0], desk.fleet[2], written_bytes=RUNTIME_S * SECOND_BYTES)
        desk.fleet[1].power_on()
        said = ended(process, status=9)
    assert "1 of 6 runs failed" in said
    assert "its host rebooted" in " ".join(said.split())
    assert sorted(desk.states()) == ["failed"] + ["finished"] * 5
    ended(desk.start("resume", desk.out, "--retry-failed"))
    assert desk.states() == ["finished"] * 6
    check_clean(desk.fleet.hosts)


def test_a_volume_that_fills_up_in_the_middle_is_named(desk: Desk) -> None:
    """At the end, by status, and to hosts that waited for it and never began."""
    full = desk.fleet[1]
    full.run("mount", "-t", "tmpfs", "-o", "size=200m,mode=700", "none", "/var/tmp")
    desk.prepare(runtime="1s")
    profile = desk.folder / "p.yaml"
    profile.write_text(profile.read_text().replace("b: {", "b: {size: 40m, "))
    with held_on(desk.fleet.hosts, "^.a.$"):
        process = desk.run()
        until(lambda: all(gate_has(host, "woke") for host in desk.fleet.hosts))
        full.run("dd", "if=/dev/zero", "of=/var/tmp/fill", "bs=1M", "count=120")
        release(*desk.fleet.hosts, written_bytes=SECOND_BYTES)
        said = ended(process, status=9)
    full.run("umount", "--lazy", "/var/tmp")  # the hosts are those of other tests too
    assert "a disk is full: vm1: /var/tmp/volbench-" in said
    assert "only 2 of 3 clients are ready: vm1 cannot go on (/var/tmp/volbench-" in said
    shown = " ".join(ended(desk.start("status", desk.out), status=9).split())
    assert "vm0 1 1 vm1 1 0 1 vm2 1 1 " in shown
    assert "left to do (vm1: /var/tmp/volbench-" in shown


def test_a_full_disk_under_the_results_is_reported(desk: Desk) -> None:
    """What cannot be stored stays where it was measured, until there is room for it."""
    room = desk.folder / "room"
    room.mkdir()
    desk.prepare()
    full = Desk(desk.folder, desk.fleet, name="room/c")
    mount = ("mount", "-t", "tmpfs", "-o", "size=128k", "none", str(room))
    subprocess.run(mount, check=True)
    try:
        said = ended(full.run(), status=7)
        assert "No space left on device" in said
        subprocess.run(["mount", "-o", "remount,size=64m", str(room)], check=True)
        ended(full.start("resume", full.out))
        check_once(full)
        check_clean(desk.fleet.hosts)
    finally:
        subprocess.run(["umount", str(room)], check=True)


def test_a_file_on_a_host_is_probed_for_cold_blocks_once_it_may_be_overwritten(desk: Desk) -> None:
    """The hint names the host; the first reads run in a folder there, of which nothing is left."""
    desk.prepare(jobs=["a"], runtime="1s")
    profile, inventory = desk.folder / "p.yaml", desk.folder / "fleet.yaml"
    profile.write_text(profile.read_text().replace("name: p", "name: p\ncold_probe: true"))
    inventory.write_text(inventory.read_text().replace("data: /var/tmp", "data: /var/tmp/written"))
    for host in desk.fleet.hosts:
        host.run("sh", "-c", "head -c 8M /dev/urandom > /var/tmp/written")
    consent = "--allow-destroy vm0:/var/tmp/written"
    assert f"hint: for vm0: move it away, or allow it: {consent}\n" in ended(desk.run(), 3)
    ended(desk.run("--limit", "vm0", *consent.split()))
    (view,) = campaign_data(desk.out).context().views
    assert view.cold is not None
    for host in desk.fleet.hosts:
        host.run("rm", "/var/tmp/written")
    check_clean(desk.fleet.hosts)
