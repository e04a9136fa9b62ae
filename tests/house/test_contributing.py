"""The walk-throughs for contributors: their diffs apply, and what they add works."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.finished_campaign import half_finished
from tests.house.project import run

pytestmark = pytest.mark.slow

PROFILE = """name: nightly
jobs:
  reads: {rw: randread, bs: 4k, ioengine: 'null', size: 1m, ticket: OPS-7}
"""
# Stands in for the container engine: a program in namespaces of its own, with a name of its own
PODMAN = """#!/bin/sh
[ "$1 $2 $3 $4" = "exec --interactive -- box" ] || exit 125
shift 4
echo "$@" >>"$0.log"
exec unshare --mount --uts -- sh -c 'hostname box; exec "$@"' sh "$@"
"""


class Changed:
    """A copy of the source in which the diff of a page was applied."""

    def __init__(self, root: Path, page: str, folder: Path) -> None:
        self.folder = folder
        for part in ("src", "tests", "profiles", "pyproject.toml"):
            source = root / part
            if source.is_file():
                shutil.copy(source, folder)
            else:
                ignored = shutil.ignore_patterns("__pycache__", "cases", "campaigns")
                shutil.copytree(source, folder / part, ignore=ignored)
        text = (root / "docs" / "contributing" / f"{page}.md").read_text(encoding="utf-8")
        (diff,) = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
        run("git", "apply", "-", cwd=folder, input=diff, check=True, timeout=300)

    def run(self, *arguments: str, path: Path | None = None) -> str:
        """Return what a module of Python prints with the changed source."""
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src")}
        if path is not None:
            environment["PATH"] = f"{path}:{environment['PATH']}"
        command = (sys.executable, "-m", *arguments)
        done = run(*command, cwd=self.folder, env=environment, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_every_walk_through_is_tested(root: Path) -> None:
    """A page with a diff has a test here."""
    pages = {path.stem for path in (root / "docs" / "contributing").glob("add-*.md")}
    tested = re.findall(r'Changed\(root, "(.+?)"', Path(__file__).read_text(encoding="utf-8"))
    assert set(tested) == pages


def test_a_chart_is_added(root: Path, tmp_path: Path) -> None:
    """`volbench plot` draws it, and its numbers are there."""
    changed = Changed(root, "add-a-chart", tmp_path)
    half_finished(tmp_path / "results")
    assert "cpu-cost" in changed.run("volbench", "plot", "--list")
    numbers = changed.run("volbench", "plot", "cpu-cost", "results", "--csv", "-", "-o", "cost.svg")
    assert "cost_s" in numbers.splitlines()[0]


def test_a_finding_is_added(root: Path, tmp_path: Path) -> None:
    """Its own test passes, and so do those of all rules."""
    changed = Changed(root, "add-a-finding", tmp_path)
    modules = [f"tests/analyse/findings/{name}.py" for name in ("test_jobs", "test_rules")]
    printed = changed.run("pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-rA", *modules)
    assert "test_writes_of_partial_blocks_are_reported[512-1]" in printed


def test_a_profile_key_is_added(root: Path, tmp_path: Path) -> None:
    """The key goes from the profile to the summary."""
    changed = Changed(root, "add-a-profile-key", tmp_path)
    (tmp_path / "ticket.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "data").mkdir()
    changed.run("volbench", "run", "ticket.yaml", "--on", "data", "--output", "results")
    assert "reads,OPS-7" in changed.run("volbench", "export", "results", "--columns", "job,ticket")


@pytest.mark.root
def test_a_channel_is_added(root: Path, tmp_path: Path) -> None:
    """A campaign runs through it."""
    changed = Changed(root, "add-a-channel", tmp_path)
    (tmp_path / "ticket.yaml").write_text(PROFILE.replace(", ticket: OPS-7", ""), encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podman").write_text(PODMAN, encoding="utf-8")
    (tmp_path / "bin" / "podman").chmod(0o755)
    host = {"container": "box", "volumes": {"data": f"{tmp_path}/data"}, "workdir": f"{tmp_path}/w"}
    (tmp_path / "fleet.yaml").write_text(json.dumps({"hosts": {"box": host}}), encoding="utf-8")
    campaign = ("ticket.yaml", "--inventory", "fleet.yaml", "--output", "results")
    changed.run("volbench", "run", *campaign, path=tmp_path / "bin")
    rows = changed.run("volbench", "export", "results", "--columns", "host,job,status")
    assert "box,reads,finished" in rows
    assert "python3" in (tmp_path / "bin" / "podman.log").read_text(encoding="utf-8")
