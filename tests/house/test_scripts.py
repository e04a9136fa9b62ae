"""The shell scripts are short, strict and well-formed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.house.project import SCRIPTS
from tests.schedule import SECONDS, ModuleScheduling, sort_slowest_first

CALLS_OF_ALL = (
    "alone",
    "kubernetes",
    "(fleet or slow or (real_time and not smoke)) and not alone and not kubernetes",
    "not alone and not fleet and not kubernetes and not slow and (smoke or not real_time)",
)
"""Markers of the calls of pytest that scripts/test --all makes."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_strict_and_short(root: Path, name: str) -> None:
    """Each script can be started, stops at errors, and can be read in one go."""
    script = root / name
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in text
    assert len(text.splitlines()) <= 165
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_setup_refuses_an_unknown_extra(root: Path, tmp_path: Path) -> None:
    """A misspelt argument changes nothing and says how it is used."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(root / "scripts" / "setup", tmp_path / "scripts")
    done = subprocess.run(
        [str(tmp_path / "scripts" / "setup"), "devel"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "usage: scripts/setup [dev | docs]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["scripts"]


def test_build_server_runs_every_test(root: Path) -> None:
    """.ci/run hands over to scripts/test --all."""
    text = (root / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(commands) == 2
    assert commands[1].startswith("exec ")
    assert commands[1].endswith('/../scripts/test" --all')


def calls_of(root: Path, checkout: Path, *arguments: str, fails: str = "") -> list[str]:
    """Return how scripts/test calls Python in a checkout whose Python only notes its arguments."""
    python = checkout / ".venv" / "bin" / "python"
    for folder in (python.parent, checkout / "scripts", checkout / "tests" / "fio"):
        folder.mkdir(parents=True)
    shutil.copy(root / "scripts" / "test", checkout / "scripts")
    calls = checkout / "calls"
    failing = f'case "$*" in {fails}) exit 1 ;; esac\n' if fails else ""
    for program, text in (
        (checkout / "scripts" / "setup", ""),
        (python.with_name("oxlint"), ""),
        (python, f'echo "$*" >> {shlex.quote(str(calls))}\n{failing}'),
    ):
        program.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        program.chmod(0o755)
    command = [str(checkout / "scripts" / "test"), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == bool(fails), done.stderr
    return calls.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("extra", ["dev", ""])
def test_setup_installs_what_is_pinned(root: Path, tmp_path: Path, extra: str) -> None:
    """Packages of tests come from the lock file, by hash; those of a user from the registry."""
    python, activate = (tmp_path / ".venv" / "bin" / name for name in ("python", "activate"))
    for path, text in (
        (python, f'echo "$*" >> {shlex.quote(str(tmp_path))}/calls\n'),
        (activate, f"VIRTUAL_ENV={tmp_path}/.venv\n"),
        (tmp_path / "scripts" / "get-prometheus", ""),
        (tmp_path / "scripts" / "cluster-build", ""),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        path.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    for name in ("scripts/setup", "pyproject.toml", ".ci/requirements.txt"):
        shutil.copy(root / name, tmp_path / name)
    command = [str(tmp_path / "scripts" / "setup"), *extra.split()]
    for _ in range(2):  # the second call finds everything installed
        subprocess.run(command, check=True, capture_output=True)
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    installs = [call.partition("install ")[2] for call in calls if "pip install" in call]
    installs = [call.removeprefix("-q --disable-pip-version-check ") for call in installs]
    pinned = "--require-hashes --only-binary :all: -r"
    own = ["--no-deps --no-build-isolation -e ."] if extra else ["-e ."]
    of_tests = [f"{pinned} .ci/requirements.txt"] if extra else []
    assert installs == [f"{pinned} .venv/uv.txt", *of_tests, *own]
    uv = (tmp_path / ".venv" / "uv.txt").read_text(encoding="utf-8")
    assert uv.startswith("uv==")
    assert set(re.findall(r"^[a-z]\S*==", uv, re.MULTILINE)) == {"uv=="}
    assert "--hash=sha256:" in uv


def runs_of(calls: list[str]) -> list[str]:
    """Return the calls of pytest that run tests, without the names of their JUnit files."""
    runs = [call for call in calls if "-m pytest" in call and "--collect-only" not in call]
    return [re.sub(r"--junitxml \S+ ", "", call) for call in runs]


def test_all_runs_every_marker(root: Path, tmp_path: Path) -> None:
    """The default leaves out five markers; with --all every test belongs to one of four calls."""
    (default,) = runs_of(calls_of(root, tmp_path / "default"))
    left_out = {"alone", "browser", "fleet", "kubernetes", "slow"}
    assert all(f"not {marker}" in default for marker in left_out)
    assert "root" not in default
    assert "--dist loadscope --no-loadscope-reorder" in default
    runs = runs_of(calls_of(root, tmp_path / "all", "--all"))
    assert sorted(run.rpartition(" -m ")[2] for run in runs) == sorted(CALLS_OF_ALL)
    assert runs[-1].endswith("-m alone"), "nothing runs beside real-time tests"


def test_folders_are_left_out_by_their_marker(root: Path) -> None:
    """The marker of a folder is there when ``-m`` selects."""
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not browser"]
    done = subprocess.run(
        [*argv, "tests/browser/test_page.py"], check=False, cwd=root, capture_output=True
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


@pytest.mark.parametrize("marks", CALLS_OF_ALL)
def test_failed_tests_are_repeated(root: Path, tmp_path: Path, marks: str) -> None:
    """Two more tries of what failed come last, beside nothing else; what fails in all fails."""
    calls = runs_of(calls_of(root, tmp_path, "--all", fails=f"*'-m {marks}'*"))
    first = next(call for call in calls if f"-m {marks}" in call)
    again = f"{first} -n 0 --last-failed --last-failed-no-failures none --maxfail 20"
    assert first in calls[: len(CALLS_OF_ALL)]
    assert calls[len(CALLS_OF_ALL) :] == [again, again]


def test_the_slowest_modules_are_distributed_first(root: Path) -> None:
    """Modules that take longest come first, others keep their order, and each stays whole."""
    assert [name for name in SECONDS if not (root / name).exists()] == []
    modules = ["tests/test_units.py", "tests/house/test_light.py", "tests/fleet/test_campaigns.py"]
    items: list[pytest.Item] = [
        Mock(nodeid=f"{name}::test_a[{n}]") for n in range(2) for name in modules
    ]
    sort_slowest_first(items)
    names = [item.nodeid for item in items]
    assert [name.partition("::")[0] for name in names] == sorted(modules * 2, key=by_seconds)
    assert [name[-2] for name in names] == ["0", "1"] * 3
    assert len({ModuleScheduling._split_scope(Mock(), name) for name in names}) == 2 + 1 + 1  # noqa: SLF001 - what xdist asks for


def by_seconds(module: str) -> float:
    """Return the key by which modules are dealt."""
    return -SECONDS.get(module, 0)


def test_types_are_checked_beside_the_tests(root: Path, tmp_path: Path) -> None:
    """Types are checked in the background, and what it finds fails the script."""
    assert "-m mypy" in calls_of(root, tmp_path, fails="*mypy*")


def test_a_path_is_checked_without_the_rest(root: Path, tmp_path: Path) -> None:
    """With a path neither style nor types of anything else are checked."""
    assert calls_of(root, tmp_path, "tests/fio", "-k", "histogram") == [
        "-m ruff format --check tests/fio",
        "-m ruff check tests/fio",
        "-m mypy tests/fio",
        "-m pytest -rs tests/fio -k histogram",
    ]


@pytest.mark.parametrize("marker", ["alone", "kubernetes", "slow"])
def test_marked_tests_are_where_scripts_test_looks(root: Path, marker: str) -> None:
    """Modules that need a quiet machine, a cluster or minutes name the marker themselves."""
    named = f"mark.{marker}"
    elsewhere = [
        path
        for path in (root / "tests").rglob("*.py")
        if named in path.read_text(encoding="utf-8") and not path.name.startswith("test_")
    ]
    assert elsewhere == []
