"""The core without the folders of its slices: it imports, runs, and says what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import SLICES
from volbench.slices import load

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/campaigns/format-1"
CORE_TESTS = ("model", "plan", "fio", "store", "present/tables")
BUNDLED = ("profiles", "prices", "volume-types", "storage-classes")
# What is said in the core of a slice, such as "catalogue.volume_types:known_limits"
REFERENCE = re.compile(rf'"(extensions\.(?:{"|".join(SLICES)})\.[a-z_.]+(?::[A-Za-z_]+)?)"')
IMPORT_ALL = """
import pkgutil, volbench
from importlib import import_module
names = [m.name for m in pkgutil.walk_packages(volbench.__path__, "volbench.")]
for name in names:
    if name != "volbench.__main__":
        import_module(name)
print(volbench.__file__, len(names))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout whose package has no slices; its bundled files are those of this one."""
    root = tmp_path_factory.mktemp("core")

    def slices(folder: str, names: list[str]) -> set[str]:
        is_package = Path(folder) == ROOT / "src/volbench/extensions"
        return {name for name in names if name == "__pycache__" or (is_package and name in SLICES)}

    shutil.copytree(ROOT / "src/volbench", root / "src/volbench", ignore=slices)
    for name in BUNDLED:
        (root / name).symlink_to(ROOT / name)
    return root


def python(
    core: Path, *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with the package that has no slices."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(core / "src")},
        cwd=cwd or core,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_imports_without_slices(core: Path) -> None:
    """Every module of the core can be imported."""
    done = python(core, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    file, count = done.stdout.split()
    assert Path(file).is_relative_to(core)
    assert int(count) > 100


def test_help_lists_verbs_of_the_core_only(core: Path) -> None:
    """Verbs and options of absent slices are not offered."""
    done = python(core, "-m", "volbench", "--help")
    assert done.returncode == 0, done.stderr
    listed = done.stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    verbs = {line.split()[0] for line in listed.splitlines()}
    assert {"run", "show", "compare", "report"} <= verbs
    assert verbs.isdisjoint({"k8s", "price", "import", "lab", "upload", "sql"})
    assert "--metrics-port" not in python(core, "-m", "volbench", "run", "--help").stdout
    assert "grafana" not in python(core, "-m", "volbench", "export", "--help").stdout


def test_the_core_plans_and_shows_without_slices(core: Path, tmp_path: Path) -> None:
    """Profiles are checked, a campaign is planned, and a recorded one is shown and judged."""
    target = tmp_path / "data"
    target.mkdir()
    recorded = shutil.copytree(RECORDED, tmp_path / "recorded")
    for arguments in (
        ("profile", "check", "quick"),
        ("run", "quick", "--on", target, "--dry-run"),
        ("show", recorded),
        ("plot", "iops", recorded, "--output", tmp_path / "iops.svg"),
    ):
        done = python(core, "-m", "volbench", *arguments, cwd=tmp_path)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        assert done.stdout or (tmp_path / "iops.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "package"),
    [
        (["price", "results", "--prices", "kamatera-azure"], "catalogue"),
        (["k8s", "status"], "kubernetes"),
        (["import", "results"], "importer"),
        (["run", "quick", "--on", ".", "--set", "limits=azure/P15", "--dry-run"], "catalogue"),
        (["run", "quick", "--on", ".", "--prices", "kamatera-azure", "--dry-run"], "catalogue"),
        (["show", "s3://bucket/results"], "object_storage"),
    ],
)
def test_a_missing_slice_is_named(
    core: Path, tmp_path: Path, arguments: list[str], package: str
) -> None:
    """A verb, an option or an address that needs a slice says which package is missing."""
    done = python(core, "-m", "volbench", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"lacks the package volbench.extensions.{package}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)  # hundreds of tests, and a busy machine
def test_tests_of_the_core_pass_without_slices(core: Path) -> None:
    """What reads, plans and shows is tested without slices; what uses a slice is left out."""
    uses = re.compile(rf"\b(?:volbench|tests)\.(?:{'|'.join(SLICES)})\b|declared_tables")
    modules = [path for name in CORE_TESTS for path in (ROOT / "tests" / name).rglob("test_*.py")]
    left_out = [path for path in modules if uses.search(path.read_text("utf-8"))]
    assert len(left_out) <= 5
    done = python(
        core,
        *("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"),
        *("-m", "not slow and not real_time and not alone and not root and not needs_slice"),
        *(path for path in modules if path not in left_out),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout


def test_seams_name_existing_modules_of_slices() -> None:
    """Every reference in the core to something of a slice can be loaded."""
    references = {
        reference
        for path in (ROOT / "src/volbench").rglob("*.py")
        if path.relative_to(ROOT / "src/volbench").parts[0] != "extensions"
        for reference in REFERENCE.findall(path.read_text("utf-8"))
    }
    assert len(references) >= 15
    for reference in sorted(references):
        assert load(reference, default="__name__") is not None, reference
    used = {reference.split(".")[1] for reference in references}
    assert used == SLICES
