"""Hosts that are named with their volumes on the command line, as for scp."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.desk import check_clean
from tests.fleet.hosts import Fleet, call, fleet
from volbench.api.many_campaigns import open_campaign
from volbench.api.one_campaign import campaign_data
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.present.terminal.conclusion import conclusion

pytestmark = pytest.mark.root

QUICK = ("--rw", "randread", "--size", "2m", "--runtime", "1s", "--ioengine", "psync")


@pytest.fixture(name="machines", scope="module")
def _machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(8, tmp_path_factory.mktemp("named") / "f") as found:
        yield found


class Shell:
    """A user's shell whose ssh_config knows the hosts as vm1 to vm8.

    Args:
        folder: home and current folder.
        machines: the hosts.
    """

    def __init__(self, folder: Path, machines: Fleet) -> None:
        self.folder = folder
        config = folder / ".ssh" / "config"
        config.parent.mkdir()
        hosts = [
            f"Host vm{number}\n  HostName {host.address}\n  HostKeyAlias {host.address}\n"
            for number, host in enumerate(machines.hosts, start=1)
        ]
        common = f"Host vm*\n  IdentityFile {machines.key}\n"
        config.write_text(
            "".join(hosts) + common + f"  UserKnownHostsFile {machines.known_hosts}\n"
        )

    def volbench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run volbench."""
        return subprocess.run(
            [sys.executable, "-m", "volbench", *arguments],
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(self.folder), "COLUMNS": "200"},
        )


@pytest.fixture(name="shell")
def _shell(tmp_path: Path, machines: Fleet) -> Shell:
    return Shell(tmp_path, machines)


def test_two_machines_are_compared(
    shell: Shell, machines: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns, and the conclusion compares them and says what differs."""
    targets = ("--on", "root@vm1:/var/tmp", "--on", "root@vm2:/var/tmp")
    done = shell.volbench("measure", *targets, *QUICK, "-o", "out")
    assert done.returncode == 0, done.stderr
    runs = [run for run in campaign_data(shell.folder / "out").campaign.runs if run.seed]
    assert {run.host for run in runs} == {"vm1", "vm2"}
    assert len({run.step for run in runs}) == len(runs)
    assert "vm2 against vm1, iops: " in done.stdout
    check_clean(machines.hosts[:2])
    dataset = open_campaign(shell.folder / "out")
    facts = dataset.facts()
    monkeypatch.setattr(dataset, "facts", lambda: facts.assign(kernel=facts["host"]))
    lines = "\n".join(conclusion(dataset, folder=shell.folder))
    assert "vm2 against vm1, iops: " in lines
    assert "kernel: vm1 in vm1, vm2 in vm2" in lines


def test_eight_machines_start_together(shell: Shell, machines: Fleet) -> None:
    """A range is a fleet; its hosts can be kept as an inventory."""
    (shell.folder / "p.yaml").write_text(
        "name: p\ndefaults: {size: 2m, runtime: 2s, time_based: 1, ioengine: psync,"
        " rate_iops: 50}\njobs:\n  a: {rw: randread, bs: 4k}\n"
    )
    done = shell.volbench("run", "p.yaml", "--on", "root@vm[1-8]:/var/tmp", "-o", "out")
    assert done.returncode == 0, done.stderr
    campaign = campaign_data(shell.folder / "out")
    assert {run.step for run in campaign.campaign.runs} == {1}
    assert campaign.frame("aggregate")["clients"].tolist() == [8]
    listed = shell.volbench("hosts", "--on", "root@vm[1-8]:/var/tmp", "--save", "fleet.yaml")
    assert listed.returncode == 0, listed.stderr
    saved = load_inventory(shell.folder / "fleet.yaml")
    assert [host.name for host in saved.hosts] == [f"vm{number}" for number in range(1, 9)]
    check_clean(machines.hosts)


def test_a_device_of_another_machine(shell: Shell, loop: str) -> None:
    """It needs the same consent as with an inventory, in the words of --on."""
    refused = shell.volbench("warmup", "--on", f"root@vm1:{loop}", "--size", "4m")
    assert refused.returncode == 3, refused.stderr
    assert f"--allow-destroy vm1:{loop}" in refused.stderr
    allowed = ("--allow-destroy", f"root@vm1:{loop}")
    warmed = shell.volbench("warmup", "--on", f"root@vm1:{loop}", "--size", "4m", *allowed, "--yes")
    assert warmed.returncode == 0, warmed.stderr
    call("blockdev", "--getsize64", loop)


def test_disks_of_two_machines_are_watched(shell: Shell, loop: str) -> None:
    """Each host has its own targets."""
    disks = ("--on", f"root@vm1:{loop}", "--on", f"root@vm2:{loop}")
    done = shell.volbench("watch", *disks, "--for", "2s", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "vm2" in done.stdout
