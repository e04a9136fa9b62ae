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
from volbench.cli.bug_report import masked
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
    """Longer names first, and only as whole words."""
    names = {"vm1": "host1", "vm1.example": "host2", socket.gethostname(): "controller"}
    text = masked("vm1.example vm1 vm12 10.1.2.3 fe80::1:2:3:4 http_s3_key=abc 1.2.3", names)
    assert text == f"host2 host1 vm12 ADDRESS ADDRESS http_s3_key={MASK} 1.2.3"
    home = call("bugreport").stdout
    assert str(Path.home()) not in home
    assert getpass.getuser() == "root" or getpass.getuser() not in home
