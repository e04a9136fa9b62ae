"""What ``pip install volbench`` gives: built and installed for real."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(root)], check=True, capture_output=True)
    return next(folder.glob("volbench-*.whl"))


@pytest.fixture(scope="module")
def bench(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a fresh venv and return its volbench command.

    The libraries volbench needs are lent from here, which needs no network; volbench itself is
    not, since the ``.pth`` file of an editable install is not read a second time.
    """
    place = tmp_path_factory.mktemp("fresh venv")
    venv.create(place, with_pip=True, symlinks=True)
    python = place / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    install = [str(python), "-m", "pip", "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return place / "bin" / "volbench"


def test_wheel_holds_code_profiles_and_licence(root: Path, wheel: Path) -> None:
    """The wheel has every module, every bundled profile, the type marker and the licence."""
    names = set(zipfile.ZipFile(wheel).namelist())
    source = root / "src"
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    profiles = {f"volbench/profiles/{path.name}" for path in (root / "profiles").glob("*.yaml")}
    beside = {
        f"volbench/{folder}/{path.name}"
        for folder in ("prices", "storage-classes", "volume-types", "machine-types")
        for path in (root / folder).glob("*.yaml")
    }
    assert profiles
    assert beside
    pages = {f"volbench/{p.relative_to(root)}" for p in (root / "docs" / "reference").rglob("*.md")}
    assert modules | profiles | beside | pages | {"volbench/py.typed"} <= names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert any(name.endswith("/data/share/man/man1/volbench-run.1") for name in names)


def test_installed_command_finds_profiles_by_name(root: Path, bench: Path, tmp_path: Path) -> None:
    """Away from the checkout, the installed command knows every bundled profile."""
    done = subprocess.run(
        [str(bench), "profile", "list"], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    for path in (root / "profiles").glob("*.yaml"):
        assert path.stem in done.stdout
    shown = subprocess.run(
        [str(bench), "profile", "show", "quick", "--yaml"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert shown.stdout == (root / "profiles" / "quick.yaml").read_text(encoding="utf-8")


def test_installed_package_is_the_one_in_the_venv(bench: Path, tmp_path: Path) -> None:
    """The fresh venv uses its own copy, not the checkout."""
    code = "import volbench; print(volbench.__file__)"
    done = subprocess.run(
        [str(bench.with_name("python")), "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert Path(done.stdout.strip()).is_relative_to(bench.parents[1])
