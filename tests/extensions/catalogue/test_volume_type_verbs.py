"""``--volume-types FILE``: profiles, inventories and overrides may name the types of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench

TYPES = """
provider: lab
checked: 2026-11-21
source: Our own measurements
types:
  fast: {size: 1g, iops: 4321}
"""
PROFILE = """
name: own
sample: 0
device_sample: 0
limits: lab/fast
defaults: {ioengine: psync, size: 1m, bs: 4k, filename: f}
jobs:
  first: {rw: write}
"""
PLAIN = PROFILE.replace("limits: lab/fast\n", "")
HOSTS = "hosts: {vm1: {address: 192.0.2.1, limits: lab/fast}}\n"


@pytest.fixture(name="types")
def _types(tmp_path: Path) -> Path:
    """Return a file of one type, beside profiles and an inventory that know it or not."""
    for name, text in (("own", PROFILE), ("plain", PLAIN), ("hosts", HOSTS)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    file = tmp_path / "lab.yaml"
    file.write_text(TYPES, encoding="utf-8")
    return file


def test_a_run_is_made_with_the_limits_of_the_file(
    types: Path, volbench: Volbench, scratch: Path, tmp_path: Path
) -> None:
    """Without the file the type is unknown; the campaign keeps the limits, for resume as well."""
    requested = ("run", "own.yaml", "--on", scratch, "--output", "out")
    unknown = volbench(*requested)
    assert unknown.returncode == 2
    assert "there is no volume type 'lab/fast'" in unknown.stderr
    done = volbench(*requested, "--volume-types", types)
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "out/campaign.json").read_text(encoding="utf-8"))
    (run,) = kept["campaign"]["runs"]
    assert (run["limits"]["name"], run["limits"]["iops"]) == ("lab/fast", 4321)
    resumed = volbench("resume", "out")
    assert resumed.returncode == 0, resumed.stderr


def test_overrides_know_the_types(types: Path, volbench: Volbench, scratch: Path) -> None:
    """`--set limits=` names a type of the file, too."""
    requested = ("run", "plain.yaml", "--on", scratch, "--dry-run", "--set", "limits=lab/fast")
    assert volbench(*requested).returncode == 2
    done = volbench(*requested, "--volume-types", types)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "requested",
    [
        ("profile", "show", "own.yaml"),
        ("profile", "check", "own.yaml"),
        ("profile", "render", "own.yaml", "--output", "jobs"),
        ("hosts", "--list", "--inventory", "hosts.yaml"),
    ],
)
def test_verbs_that_read_files_know_the_volume_types(
    types: Path, volbench: Volbench, requested: tuple[str, ...]
) -> None:
    """Checking and showing take the same option as measuring."""
    assert "there is no volume type 'lab/fast'" in volbench(*requested).stderr
    done = volbench(*requested, "--volume-types", types)
    assert done.returncode == 0, done.stderr


def test_a_bad_file_is_reported(types: Path, volbench: Volbench, scratch: Path) -> None:
    """A file that can't be read stops everything with its name."""
    types.write_text("provider: lab\n", encoding="utf-8")
    done = volbench("run", "plain.yaml", "--on", scratch, "--volume-types", types)
    assert done.returncode == 2
    assert "lab.yaml" in done.stderr
