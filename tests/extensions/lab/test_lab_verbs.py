"""The lab, called as a user calls it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import COMMAND, Volbench
from tests.waiting import Started
from volbench.extensions.lab.scenario import scenario_names


def lab_up(folder: Path, *options: str) -> Started[str]:
    """Start the lab in a folder."""
    command = [*COMMAND, "lab", "up", "p15", *options, "--output", "lab"]
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    return Started(command, stdin=none, stdout=pipe, stderr=pipe, text=True, cwd=folder)


def test_list_names_every_scenario(volbench: Volbench) -> None:
    """`lab list` has a row for each."""
    done = volbench("lab", "list")
    assert done.returncode == 0
    assert all(f"\n{name} " in done.stdout for name in scenario_names())


def test_show_lists_the_expected_results(volbench: Volbench) -> None:
    """`lab show p15` tells its cap, its words, and what binds."""
    done = volbench("lab", "show", "p15")
    assert done.returncode == 0
    assert "1.1k" in done.stdout
    assert "125 MB/s" in done.stdout
    assert {"latency", "iops-limit", "bandwidth-limit"} <= set(done.stdout.split())


def test_show_prints_the_file(volbench: Volbench, tmp_path: Path) -> None:
    """`lab show --yaml` prints what can be saved, changed and served."""
    text = volbench("lab", "show", "gp2", "--yaml").stdout
    (tmp_path / "mine.yaml").write_text(text.replace("name: gp2", "name: mine"))
    done = volbench("lab", "show", "mine.yaml")
    assert done.returncode == 0
    assert "mine" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_serves_until_stopped(
    volbench: Volbench, tmp_path: Path, number: signal.Signals
) -> None:
    """`lab up` prints a URI that `volbench run` measures, and takes everything down at the end."""
    with lab_up(tmp_path, "--size", "8m") as lab:
        assert lab.stdout is not None
        assert lab.stderr is not None
        uri = lab.stdout.readline().strip()
        assert uri == f"nbd+unix:///?socket={tmp_path}/lab/volume.sock"
        text = "name: one\njobs: {a: {rw: write, bs: 64k, size: 1m}}\n"
        (tmp_path / "one.yaml").write_text(text)
        refused = volbench("run", "one.yaml", "--on", uri, "--output", "refused")
        done = volbench("run", "one.yaml", "--on", uri, "--allow-destroy", uri, "--output", "out")
        lab.send_signal(number)
        hints = lab.stderr.read()
    assert refused.returncode == 3
    assert done.returncode == 0, done.stderr
    assert lab.returncode == 0
    assert "--allow-destroy" in hints
    assert "volbench lab show p15" in hints
    assert not (tmp_path / "lab" / "volume.sock").exists()


@pytest.mark.slow
def test_up_reports_when_its_server_dies(tmp_path: Path) -> None:
    """When nbdkit is gone the lab says so and ends with code 1."""
    with lab_up(tmp_path) as lab:
        assert lab.stdout is not None
        assert lab.stderr is not None
        assert lab.stdout.readline()
        os.kill(int((tmp_path / "lab" / "nbdkit.pid").read_text()), signal.SIGTERM)
        words = lab.stderr.read()
    assert lab.returncode == 1
    assert "nbdkit exited" in words
