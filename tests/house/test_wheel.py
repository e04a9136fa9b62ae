"""What ``pip install volbench`` gives: built and installed for real."""

import hashlib
import os
import re
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.project import run

pytestmark = pytest.mark.nightly


def build(root: Path, folder: Path) -> Path:
    """Build the source distribution, and the wheel from it; return their folder."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, root)
    run(*command, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": "1767225600"})
    return folder


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both distributions of this checkout."""
    return build(root, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """Return the wheel of this checkout."""
    return next(built.glob("volbench-*.whl"))


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
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, check=True)
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
    assert "volbench/present/renderers/interactive/bokeh.min.js" in names
    for licence in ("LICENSE", "THIRD_PARTY.md"):
        assert any(name.endswith(f"/licenses/{licence}") for name in names)
    assert any(name.endswith("/data/share/man/man1/volbench-run.1") for name in names)


def test_the_source_distribution_holds_what_the_wheel_needs(built: Path) -> None:
    """No tests, whose recorded results are ten times as large, and nothing that the build makes."""
    archive = next(built.glob("volbench-*.tar.gz"))
    with tarfile.open(archive) as opened:
        names = [name.partition("/")[2] for name in opened.getnames()]
    tops = {name.partition("/")[0] for name in names}
    assert {"src", "profiles", "docs", "scripts", "LICENSE", "CHANGELOG.md"} <= tops
    assert not tops & {"tests", "benchmarks", ".ci"}
    assert not [name for name in names if name.endswith((".min.js", ".pyc", ".png"))]
    assert archive.stat().st_size < 2_000_000


def test_a_second_build_gives_the_same_bytes(root: Path, built: Path, tmp_path: Path) -> None:
    """Both distributions can be reproduced by whoever has the sources."""
    once, again = (
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (built, build(root, tmp_path))
    )
    assert len(once) == 2
    assert again == once


def test_an_index_accepts_the_distributions(built: Path) -> None:
    """The README renders there and the wheel has nothing that does not belong in one."""
    files = sorted(built.iterdir())
    tools = Path(sys.executable).parent
    for command in (
        (tools / "twine", "check", "--strict", *files),
        (tools / "check-wheel-contents", *built.glob("*.whl")),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_index_shows_a_readme_without_dead_links(root: Path, wheel: Path) -> None:
    """Links go to files of this version at the one address of the project, and these exist."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        text = opened.read(name).decode()
    (address,) = re.findall(r"^Project-URL: Repository, (\S+)$", text, re.MULTILINE)
    (version,) = re.findall(r"^Version: (\S+)$", text, re.MULTILINE)
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text.partition("\n\n")[2])
    ours = [target for target in targets if target.startswith(address)]
    assert len(ours) > 10
    for target in ours:
        kind, tag, path = target.removeprefix(f"{address}/").split("/", 2)
        assert (kind, tag) == ("raw" if path.endswith(".png") else "blob", f"v{version}")
        assert (root / path).exists(), target
    assert all(target.startswith("https://") for target in targets)


def test_installed_command_finds_profiles_by_name(root: Path, bench: Path, tmp_path: Path) -> None:
    """Away from the checkout, the installed command knows every bundled profile."""
    done = run(bench, "profile", "list", check=True, cwd=tmp_path)
    for path in (root / "profiles").glob("*.yaml"):
        assert path.stem in done.stdout
    shown = run(bench, "profile", "show", "quick", "--yaml", check=True, cwd=tmp_path)
    assert shown.stdout == (root / "profiles" / "quick.yaml").read_text(encoding="utf-8")
