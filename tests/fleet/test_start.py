"""Start of a step on real hosts: other users, slow and hung hosts, and clocks that are off."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import volbench
from tests.fleet import texts
from tests.fleet.delay import long_line
from tests.fleet.desk import SECOND_BYTES, Desk, check_clean, ended, fios, gate_has, heard
from tests.fleet.hosts import Fleet
from tests.held_fio import held_on, release
from tests.waiting import until
from volbench.store.log_files import open_log

pytestmark = pytest.mark.root


def test_ordinary_user_starts_fio_by_sudo(desk: Desk) -> None:
    """Fio works as root, the controller as an ordinary user: the start reaches it all the same."""
    desk.prepare(runtime="1s", user=texts.USER, defaults="sudo: yes", jobs=["a"])
    with sudoers(desk.fleet, "Defaults umask=077\nDefaults umask_override\n" + texts.SUDOERS):
        ended(desk.start("hosts", "--inventory", "fleet.yaml"))
        ended(desk.run())
    assert desk.states() == ["finished"] * 2
    for host in desk.fleet.hosts:
        assert fios(host) == []
        assert host.run("find", "/var/tmp", "-type", "f") == ""
        assert ".volbench" not in host.run("ls", "-A", f"/run/home/{texts.USER}")


def test_probe_fails_where_a_run_would(desk: Desk) -> None:
    """A sudo that starts everything but the agent passes every look, not the rehearsal."""
    desk.prepare(user=texts.USER, defaults="sudo: yes")
    with sudoers(desk.fleet, texts.SUDOERS + f"{texts.USER} ALL=(ALL) !/usr/bin/python3*\n"):
        printed = ended(desk.start("hosts", "--inventory", "fleet.yaml"), status=9)
    assert "sudo does not start" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("policy", "others"), [("best-effort", "finished"), ("all", "interrupted")]
)
def test_a_hung_host_delays_the_others_only_briefly(desk: Desk, policy: str, others: str) -> None:
    """A host that hangs before a step is not waited for; under `all` the step fails with its name.

    When it is back, its own run is ended, not started alone.
    """
    desk.prepare(runtime="15s")  # a host that is back before the end of the others is not given up
    last = "002-b-r1-vm0"
    process = desk.run("--policy", f"{policy},4s")
    until(lambda: gate_has(desk.fleet[1], "woke"))
    desk.fleet[1].freeze()
    try:
        printed = heard(process, "step 2 does not wait for vm1")
        until(lambda: gate_has(desk.fleet[0], "woke", step=2) or desk.ended_runs() & {last})
    finally:
        desk.fleet[1].freeze(thaw=True)
    printed += ended(process, status=9)
    assert desk.states() == ["finished", "finished", others, "interrupted"]
    notes = volbench.open_campaign(desk.out).runs
    assert "others did not wait for it" in notes["002-b-r1-vm1"].reason
    if policy == "all":
        reason = "only 1 of 2 clients are ready: vm1 did not answer"
        assert notes["002-b-r1-vm0"].reason == reason
    check_clean(desk.fleet.hosts)


def test_the_true_skew_is_within_the_reported_bound(desk: Desk) -> None:
    """One of two hosts is 100 ms away; the logs of fio are all in our kernel's time.

    Writes that a busy disk leaves in the page cache are invalid, and have no skew: they are synced.
    """
    with long_line(desk.fleet[1], round_trip_s=0.1) as port:
        desk.prepare(runtime="1s", jobs=["a"])
        profile = desk.folder / "p.yaml"
        profile.write_text(profile.read_text().replace("psync", "psync, end_fsync: 1"))
        inventory = desk.folder / "fleet.yaml"
        far = f"address: 127.0.0.1, port: {port}, "
        inventory.write_text(
            inventory.read_text().replace(f"address: {desk.fleet[1].address}, ", far)
        )
        ended(desk.run("--accept-new-host-keys"))
    begun = []
    for path in desk.out.glob("runs/001-*/series_lat.1.log*"):
        with open_log(path) as log:
            begun.append(int(log.readline().split(b",")[0]) / 1000)
    step = volbench.open_campaign(desk.out).frame("aggregate").iloc[0]
    reported_s = float(step["start_skew_s"]) + float(step["start_skew_bound_s"])
    assert len(begun) == 2
    # None is reported of a log that a busy machine left incomplete.
    assert math.isnan(reported_s) or max(begun) - min(begun) <= reported_s + 0.002


def test_a_controller_that_was_stopped_blames_no_host(desk: Desk) -> None:
    """Hosts are as silent as they were before: nobody heard them in between."""
    desk.prepare(runtime="1s", jobs=["a"])
    process = desk.run("--policy", "all,6s")
    until(lambda: any(gate_has(host, "ready") for host in desk.fleet.hosts))
    process.send_signal(signal.SIGSTOP)
    time.sleep(12)
    process.send_signal(signal.SIGCONT)
    printed = ended(process)
    assert "not answer" not in printed
    assert "should have ended" not in printed
    assert desk.states() == ["finished"] * 2


def test_hung_host_does_not_hold_up_the_end(desk: Desk) -> None:
    """When the other clients have ended, the campaign ends; a resume fetches what was left."""
    desk.prepare(runtime="1s", jobs=["a"])
    with held_on(desk.fleet.hosts, "^.a.$"):
        process = desk.run("--policy", "best-effort,4s")
        until(lambda: all(gate_has(host, "woke") for host in desk.fleet.hosts))
        desk.fleet[1].freeze()
        try:
            release(desk.fleet[0], written_bytes=SECOND_BYTES)
            assert "vm1" in ended(process, status=4)
        finally:
            desk.fleet[1].freeze(thaw=True)
        release(desk.fleet[1], written_bytes=SECOND_BYTES)
        assert desk.states() == ["finished", "interrupted"]
        assert "r1-vm0 is in state ended" in (desk.out / "hosts/vm0.log").read_text()
        ended(desk.start("resume", desk.out))
    assert desk.states() == ["finished"] * 2
    check_clean(desk.fleet.hosts)


@contextmanager
def sudoers(fleet: Fleet, text: str) -> Iterator[None]:
    """Give every host other rules of sudo for a while."""
    paths = [host.folder / "etc/sudoers" for host in fleet.hosts]
    for path in paths:
        path.write_text(text)
    try:
        yield
    finally:
        for path in paths:
            path.write_text(texts.SUDOERS)
