"""`volbench bugreport`: versions, machine and last messages, without names and secrets."""

from __future__ import annotations

import getpass
import os
import platform
import socket
import subprocess
from pathlib import Path

import pytest

import volbench
from tests.command_line import COMMAND, call
from volbench.cli.bug_report import masked, names_of, without_targets
from volbench.model.campaign.host import Host, Pod
from volbench.model.profile.secret_values import MASK


def test_versions_and_machine_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a campaign; a fio that is missing or cannot start is told as such."""
    text = call("bugreport").stdout
    assert f"  volbench: {volbench.__version__}\n" in text
    assert f"kernel {platform.release()}" in text
    assert "pandas 3" in text or "pandas 2" in text
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "  fio: not installed\n" in call("bugreport").stdout
    (tmp_path / "fio").write_text("#!/bin/sh\necho cannot map libaio >&2\nexit 127\n")
    (tmp_path / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    assert "  fio: cannot map libaio (" in call("bugreport").stdout


def test_a_failed_run_has_its_reason_and_the_last_words_of_fio(tmp_path: Path) -> None:
    """Targets are masked everywhere, in the file that was asked for too."""
    data, profile = tmp_path / "data", tmp_path / "p.yaml"
    data.mkdir()
    profile.write_text("name: p\njobs: {a: {rw: read, bs: 4k, size: 1m, verify: crc32c}}\n")
    run = [*COMMAND, "run", str(profile), "--on", f"data={data}", "--output", str(tmp_path / "c")]
    subprocess.run(run, capture_output=True, check=False)  # nobody wrote checksums to the file
    written = tmp_path / "report.txt"
    text = call("bugreport", tmp_path / "c", "--output", written).stdout
    assert written.read_text(encoding="utf-8") == text
    assert "\n  command: volbench run " in text
    assert "--on data=TARGET" in text
    assert "1 failed" in text
    assert "\n  controller:\n    [1/" in text
    assert "\n    verify: bad" in text.partition("\n  fio of ")[2]
    assert "volume1" in text
    assert str(data) not in text


def test_a_campaign_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """The report is needed most then."""
    (tmp_path / "campaign.json").write_text("{")
    done = call("bugreport", tmp_path)
    assert done.returncode == 0
    assert "  cannot be read: " in done.stdout


def test_names_and_secrets_are_masked() -> None:
    """Longer names first, only as whole words, and within the ID of a run."""
    names = {"vm1": "host1", "vm1.example": "host2", socket.gethostname(): "controller"}
    text = masked("vm1.example vm1 VM1 001-read-r1-vm1 vm12 http_s3_key=abc 1.2.3", names)
    assert text == f"host2 host1 host1 001-read-r1-host1 vm12 http_s3_key={MASK} 1.2.3"
    home = call("bugreport").stdout
    assert str(Path.home()) not in home
    assert getpass.getuser() == "root" or getpass.getuser() not in home


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.1.2.3:22 fe80::1:2:3:4", "ADDRESS:22 ADDRESS"),
        (
            "fe80::1: no route; [2001:DB8::5]:22 ::ffff:10.1.2.3",
            "ADDRESS: no route; [ADDRESS]:22 ADDRESS",
        ),
        ("52:54:00:12:34:56 at 12:30:45 in io::read", "ADDRESS at 12:30:45 in io::read"),
        ("/Users/karl/p.yaml, /media/karl/usb", "/Users/USER/p.yaml, /media/USER/usb"),
        ("/dev/disk/by-id/nvme-S5GX-part1: busy", "/dev/disk/by-id/DISK: busy"),
        ("ssh karl@db9.acme.example", "ssh USER@HOST"),
        ("https://karl:pw@acme.example/x s3://acme/y", "https://USER@HOST/x s3://HOST/y"),
        ("nbd+unix:///?socket=/tmp/s", "nbd+unix:///?socket=/tmp/s"),
        ("Authorization: Bearer eyJhbGciOi.abc", "Authorization: Bearer ***"),
        ("AKIAIOSFODNN7EXAMPLE aws_secret_access_key=wJalr/K7", "*** aws_secret_access_key=***"),
    ],
)
def test_names_and_keys_are_recognised_by_their_form(text: str, expected: str) -> None:
    """Those that no plan names, in the messages of fio and ssh."""
    assert masked(text, {}) == expected


def test_hosts_on_the_way_and_pods_are_masked() -> None:
    """With the users and the short names of all of them."""
    pod = Pod(name="fio-x1", namespace="acme", uid="1", container="fio", node="node-a")
    gate = Host(name="gate", address="gate.acme.example", user="hanna")
    host = Host(name="db", address="db9.acme.example", user="karl", jump=("gate", "eva@out:2222"))
    names = names_of(host.model_copy(update={"hops": (gate,), "pod": pod}), "host1")
    words = "db db9 karl gate.acme.example gate hanna eva out fio-x1 acme node-a"
    expected = (
        "host1 host1 USER host1-jump host1-jump USER USER host1-jump host1-name host1-namespace "
        "host1-node"
    )
    assert masked(words, names) == expected


def test_a_command_has_no_folders_and_no_targets() -> None:
    """A device keeps the name that the kernel gave it; one that people gave is a target."""
    command = ["run", "/srv/acme/p.yaml", "--on=data=/mnt/acme", "--on", "h1:log=/dev/sdb"]
    command += ["--allow-destroy=h1:nbd+unix:///?socket=/srv/acme/s", "--on", "/dev/mapper/acme"]
    command += ["--output=/srv/acme/c", "--yes"]
    assert [*without_targets(command)] == [
        *("run", ".../p.yaml", "--on=data=TARGET", "--on", "h1:log=/dev/sdb"),
        *("--allow-destroy=TARGET", "--on", "TARGET", "--output=.../c", "--yes"),
    ]
