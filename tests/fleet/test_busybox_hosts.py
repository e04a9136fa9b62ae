"""Hosts whose programs are those of busybox, as on Alpine, with fio and Python beside them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench
from tests.fleet.desk import JOBS, Desk, ended
from tests.fleet.hosts import fleet

pytestmark = pytest.mark.root


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, loop: str) -> Iterator[Desk]:
    with fleet(2, tmp_path / "f", busybox=True, devices=({"vdb": loop},)) as found:
        yield Desk(tmp_path, found)


def test_a_campaign_runs_on_folders(desk: Desk) -> None:
    """Every run finishes with its numbers and samples of the device, and nothing is left behind."""
    desk.prepare()
    assert "2 of 2 hosts can take part" in ended(desk.start("hosts", "--inventory", "fleet.yaml"))
    ended(desk.run())
    assert desk.states() == ["finished"] * 2 * len(JOBS)
    campaign = volbench.open_campaign(desk.out)
    assert (campaign.summary()["iops"] > 0).all()
    assert set(campaign.frame("device")["run"]) == set(campaign.runs)
    for host in desk.fleet.hosts:
        assert "fio" not in host.run("ps")
        assert host.run("sh", "-c", "find /root/.volbench /var/tmp -type f || :") == ""


def test_a_device_is_overwritten_only_if_it_may_be(desk: Desk) -> None:
    """An empty one needs its name, swap needs more, and a mounted one is refused."""
    host = desk.fleet[0]
    host.run("chmod", "755", "/dev")
    desk.prepare(runtime="1s", jobs=["a"])
    disk = {"address": host.address, "volumes": {"data": "/dev/vdb"}}
    inventory = {"defaults": {"user": "root", "key": str(desk.fleet.key)}, "hosts": {"vm0": disk}}
    (desk.folder / "fleet.yaml").write_text(json.dumps(inventory), encoding="utf-8")
    allowed = ("--allow-destroy", "vm0:/dev/vdb")
    assert "would overwrite /dev/vdb on vm0" in ended(desk.run(), status=3)
    host.run("mkswap", "/dev/vdb")
    assert "/dev/vdb holds swap" in ended(desk.run(*allowed), status=3)
    host.run("mke2fs", "/dev/vdb")
    host.run("mkdir", "/run/mounted")
    host.run("mount", "/dev/vdb", "/run/mounted")
    assert "/dev/vdb is mounted" in ended(desk.run(*allowed, "--wipe-signatures"), status=3)
    host.run("umount", "/run/mounted")
    assert "/dev/vdb holds ext" in ended(desk.run(*allowed), status=3)
    ended(desk.run(*allowed, "--wipe-signatures"))
    assert desk.states() == ["finished"]
