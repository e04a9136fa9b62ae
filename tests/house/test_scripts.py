"""The shell scripts are short, strict and well-formed."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.house.project import SCRIPTS, run
from tests.schedule import ModuleScheduling, arrange

QUICK = "not (alone or browser or fleet or kubernetes or nightly or slow) or smoke"


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_strict_and_short(root: Path, name: str) -> None:
    """Each script can be started, stops at errors, and can be read in one go."""
    script = root / name
    text = script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in text
    assert len(text.splitlines()) <= 165
    run("bash", "-n", script, check=True)


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
    done = run(checkout / "scripts" / "test", *arguments)
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
    for _ in range(2):  # the second call finds everything installed
        run(tmp_path / "scripts" / "setup", *extra.split(), check=True)
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
    """Return the calls of pytest."""
    return [call for call in calls if "-m pytest" in call]


@pytest.mark.parametrize(
    ("arguments", "expressions"),
    [
        ([], [QUICK]),
        (["--all"], ["not alone and not nightly", "alone and not nightly"]),
        (["--nightly"], ["not alone", "alone"]),
    ],
)
def test_every_marker_belongs_to_a_call(
    root: Path, tmp_path: Path, arguments: list[str], expressions: list[str]
) -> None:
    """One pool of workers runs all tests but those that must run alone, which come last."""
    runs = runs_of(calls_of(root, tmp_path, *arguments))
    assert [each.rpartition(" -m ")[2] for each in runs] == expressions
    assert "--dist loadscope --no-loadscope-reorder" in runs[0]


@pytest.mark.slow
def test_folders_are_left_out_by_their_marker(root: Path) -> None:
    """The marker of a folder is there when ``-m`` selects."""
    argv = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not browser")
    done = run(*argv, "tests/browser/test_pages.py", cwd=root)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


def test_a_failure_is_repeated_and_fails(root: Path, tmp_path: Path) -> None:
    """A second try, alone, tells a race from a defect; the run has failed all the same."""
    calls = runs_of(calls_of(root, tmp_path, fails="*'-n 2'*"))
    again = f"{calls[0]} -n 0 --last-failed --last-failed-no-failures none --maxfail 20"
    assert calls[1:] == [again]


def test_workers_take_the_cluster_first_and_waits_among_the_rest(root: Path) -> None:
    """Modules of the cluster have one scope; those that wait do not all run at the same time."""
    cluster = [
        f"tests/{path.relative_to(root / 'tests')}"
        for path in (root / "tests").rglob("test_*.py")
        if "cluster: LocalCluster" in path.read_text(encoding="utf-8")
    ]
    modules = {"tests/a.py": 1.0, "tests/b.py": 0.8, cluster[0]: 0.8, "tests/c.py": 1.0}
    assert arrange(modules) == [cluster[0], "tests/a.py", "tests/b.py", "tests/c.py"]
    names = [f"{cluster[0]}::test_a", f"{cluster[1]}::test_b", "tests/a.py::test_c[1]"]
    scopes = [ModuleScheduling._split_scope(Mock(), name) for name in names]  # noqa: SLF001 - what xdist asks for
    assert scopes == ["kubernetes", "kubernetes", "tests/a.py"]


def test_tests_that_reach_a_changed_file_are_selected(tmp_path: Path, root: Path) -> None:
    """Imports, verbs, fixtures and text lead to tests; others are left out."""
    files = {
        "src/volbench/__init__.py": "",
        "src/volbench/units.py": "X = 1",
        "src/volbench/errors.py": "Y = 1",
        "src/volbench/show.py": "from volbench.units import X",
        "src/volbench/main.py": 'VERBS = {\n    "show": "show:show",\n}',
        "tests/__init__.py": "",
        "tests/conftest.py": "import pytest\nfrom volbench import units\n\n@pytest.fixture\n"
        "def size():\n    return units.X",
        "tests/test_import.py": "from volbench import show",
        "tests/test_verb.py": 'call("show")',
        "tests/test_fixture.py": "def test_size(size): ...",
        "tests/test_text.py": 'patch("volbench.units.X")',
        "tests/test_file.py": 'read("page.md")',
        "tests/test_other.py": "from volbench import errors",
        "docs/page.md": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(root / "scripts/changed_tests.py", tmp_path / "scripts")

    def git(*words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        run("git", *identity, *words, cwd=tmp_path, check=True)

    def selected(changed: str) -> list[str]:
        (tmp_path / changed).write_text("Z = 2\n", encoding="utf-8")
        done = run(sys.executable, script, check=True)
        git("checkout", "-q", ".")
        return [Path(line).stem.removeprefix("test_") for line in done.stdout.splitlines()]

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert selected("src/volbench/units.py") == ["fixture", "import", "text", "verb"]
    assert selected("src/volbench/errors.py") == ["other"]
    assert selected("docs/page.md") == ["file"]


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
