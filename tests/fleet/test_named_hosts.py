"""Hosts that are named with their volumes on the command line, as for scp."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.desk import check_clean
from tests.fleet.hosts import Fleet, call
from volbench.analyse.compare.rate_search import searches_in
from volbench.api.many_campaigns import open_campaign
from volbench.api.one_campaign import campaign_data
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.present.terminal.conclusion import conclusion

pytestmark = pytest.mark.root

QUICK = ("--rw", "randread", "--size", "2m", "--runtime", "1s", "--ioengine", "psync")


class Shell:
    """A user's shell whose ssh_config knows the hosts as vm1 and vm2.

    Args:
        folder: home and current folder.
        hosts: vm1 and vm2.
    """

    def __init__(self, folder: Path, hosts: Fleet) -> None:
        self.folder = folder
        config = folder / ".ssh" / "config"
        config.parent.mkdir()
        known = [
            f"Host vm{number}\n  HostName {host.address}\n  HostKeyAlias {host.address}\n"
            for number, host in enumerate(hosts.hosts, start=1)
        ]
        common = f"Host vm*\n  IdentityFile {hosts.key}\n"
        config.write_text("".join(known) + common + f"  UserKnownHostsFile {hosts.known_hosts}\n")

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
def _shell(tmp_path: Path, hosts: Fleet) -> Shell:
    return Shell(tmp_path, hosts)


def test_two_machines_are_compared(
    shell: Shell, hosts: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns, and the conclusion compares them and says what differs."""
    targets = ("--on", "root@vm1:/var/tmp", "--on", "root@vm2:/var/tmp")
    done = shell.volbench("measure", *targets, *QUICK, "-o", "out")
    assert done.returncode == 0, done.stderr
    runs = [run for run in campaign_data(shell.folder / "out").campaign.runs if run.seed]
    assert {run.host for run in runs} == {"vm1", "vm2"}
    assert len({run.step for run in runs}) == len(runs)
    assert "vm2 against vm1, iops: " in done.stdout
    check_clean(hosts.hosts)
    dataset = open_campaign(shell.folder / "out")
    facts = dataset.facts()
    monkeypatch.setattr(dataset, "facts", lambda: facts.assign(kernel=facts["host"]))
    lines = "\n".join(conclusion(dataset, folder=shell.folder))
    assert "vm2 against vm1, iops: " in lines
    assert "kernel: vm1 in vm1, vm2 in vm2" in lines


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


@pytest.mark.parametrize(("verb", "searches"), [("run", 1), ("measure", 2)])
def test_hosts_together_share_a_search_and_hosts_in_turn_have_their_own(
    shell: Shell, hosts: Fleet, verb: str, searches: int
) -> None:
    """Rates are added up over hosts that run at the same time, never over hosts in turn."""
    profile = "name: p\ndefaults: {size: 2m, runtime: 1s, time_based: 1, ioengine: psync}\njobs:\n"
    (shell.folder / "p").write_text(f"{profile}  r: {{rw: randread, within: p99 < 100s}}\n")
    what = ("run", "p") if verb == "run" else ("measure", *QUICK, "--within", "p99 < 100s")
    done = shell.volbench(*what, "--on", "root@vm[1-2]:/var/tmp", "-o", "out")
    assert done.returncode == 0, done.stderr
    rows = open_campaign(shell.folder / "out").results()
    found = searches_in(rows)
    assert [len(each.places) for each in found] == [6 // searches] * searches
    for each in found:
        first = [rows[place] for place in each.places if rows[place]["repeat"] == 1]
        assert each.search.trials[0].rate == pytest.approx(
            sum(float(str(row["iops"])) for row in first)
        )
    check_clean(hosts.hosts)


def test_named_hosts_are_kept_as_an_inventory(shell: Shell) -> None:
    """A range is a fleet."""
    listed = shell.volbench("hosts", "--on", "root@vm[1-2]:/var/tmp", "--save", "fleet.yaml")
    assert listed.returncode == 0, listed.stderr
    saved = load_inventory(shell.folder / "fleet.yaml")
    assert [host.name for host in saved.hosts] == ["vm1", "vm2"]
