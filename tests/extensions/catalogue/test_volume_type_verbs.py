"""Own volume types: profiles, inventories and overrides may name the types of a file."""

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
    for name, text in (("own", PROFILE), ("plain", PLAIN), ("hosts", HOSTS)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    file = tmp_path / "lab.yaml"
    file.write_text(TYPES, encoding="utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    "requested",
    [
        ("run", "own.yaml", "--on", ".", "--dry-run"),
        ("run", "plain.yaml", "--on", ".", "--dry-run", "--set", "limits=lab/fast"),
        ("profile", "show", "own.yaml"),
        ("hosts", "--list", "--inventory", "hosts.yaml"),
        ("audit", "--list", "lab/fast"),
    ],
)
def test_types_in_the_folder_are_known(
    types: Path, volbench: Volbench, requested: tuple[str, ...], tmp_path: Path
) -> None:
    """Every verb knows the types in ./volume-types."""
    assert "there is no volume type 'lab/fast'" in volbench(*requested).stderr
    (tmp_path / "volume-types").mkdir()
    types.rename(tmp_path / "volume-types" / types.name)
    done = volbench(*requested)
    assert done.returncode == 0, done.stderr
