"""The seam of extensions: the core without them, and what the bundled ones name."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.finished_campaign import half_finished
from tests.house.project import EXTENSIONS, run
from volbench.extension import extensions, load

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/campaigns/format-1"
CORE_TESTS = ("plan/profile", "store")
"""Folders whose tests reach the seam of extensions: to others the core is the same without them."""
BUNDLED = ("profiles", "prices", "volume-types", "storage-classes")
# Files of the example of a page: the name begins a paragraph, which ends before the content
FILES_OF_PAGE = re.compile(
    r"^`([\w/]+\.\w+)`(?:.(?!```))*\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL
)
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
    """Return a checkout whose package has no extensions, with the bundled files of this one."""
    root = tmp_path_factory.mktemp("core")
    ignored = shutil.ignore_patterns("__pycache__", "extensions")
    shutil.copytree(ROOT / "src/volbench", root / "src/volbench", ignore=ignored)
    for name in BUNDLED:
        (root / name).symlink_to(ROOT / name)
    return root


def python(
    core: Path, *arguments: object, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with the package that has no extensions."""
    environment = {**os.environ, "PYTHONPATH": str(core / "src")}
    return run(sys.executable, *arguments, env=environment, cwd=cwd or core)


@pytest.mark.slow
def test_the_core_imports_without_extensions(core: Path) -> None:
    """Every module of the core can be imported."""
    done = python(core, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    file, count = done.stdout.split()
    assert Path(file).is_relative_to(core)
    assert int(count) > 100


def test_help_lists_verbs_of_the_core_only(core: Path) -> None:
    """Verbs and options of absent extensions are not offered."""
    done = python(core, "-m", "volbench", "--help")
    assert done.returncode == 0, done.stderr
    verbs = set(re.findall(r"^  ([\w-]+)  ", done.stdout, re.MULTILINE))
    assert {"run", "show", "compare", "report"} <= verbs
    assert verbs.isdisjoint({"k8s", "price", "import", "lab", "watch"})
    assert "--metrics" not in python(core, "-m", "volbench", "run", "--help").stdout
    assert "grafana" not in python(core, "-m", "volbench", "export", "--help").stdout


@pytest.mark.slow
def test_the_core_plans_and_shows_without_extensions(core: Path, tmp_path: Path) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["k8s", "status"], "No such command 'k8s'"),
        (["run", "quick", "--on", ".", "--k8s"], "no such option '--k8s'"),
        (
            ["run", "quick", "--on", ".", "--set", "limits=azure/P15", "--dry-run"],
            "no installed extension knows volume or machine types",
        ),
    ],
)
def test_what_is_missing_is_said(
    core: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """A verb, an option or a volume type that needs an extension is refused without a traceback."""
    done = python(core, "-m", "volbench", *arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)  # hundreds of tests, and a busy machine
def test_tests_of_the_core_pass_without_extensions(core: Path) -> None:
    """What reads, plans and shows is tested without extensions; what uses one is left out."""
    uses = re.compile(r"\b(?:volbench|tests)\.extensions\b|declared_tables")
    modules = [path for name in CORE_TESTS for path in (ROOT / "tests" / name).rglob("test_*.py")]
    left_out = [path for path in modules if uses.search(path.read_text("utf-8"))]
    assert len(left_out) <= 5
    done = python(
        core,
        *("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"),
        *("-m", "not slow and not alone and not root"),
        *(path for path in modules if path not in left_out),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout


def references(value: object) -> Iterator[str]:
    """Yield every reference in what an extension adds."""
    if isinstance(value, str):
        if re.fullmatch(r"[\w.]+:\w+", value):
            yield value
    elif isinstance(value, Iterable):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from references(each)


def test_extensions_name_what_exists() -> None:
    """Every reference of a bundled extension can be loaded, and lies in its own folder."""
    assert {extension.name for extension in extensions()} == EXTENSIONS
    for extension in extensions():
        found = list(references(extension))
        assert found
        for reference in found:
            assert reference.startswith(f"volbench.extensions.{extension.name}."), reference
            assert load(reference) is not None


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the example of the page, installed as a package of its own."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    page = (ROOT / "docs/contributing/write-an-extension.md").read_text("utf-8")
    files = FILES_OF_PAGE.findall(page)
    assert [name for name, _ in files] == [
        "pyproject.toml",
        *(f"volbench_postgres/{name}.py" for name in ("__init__", "pages", "chart")),
    ]
    for name, text in files:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    subprocess.run([*pip, "--no-build-isolation", "--target", str(target), str(source)], check=True)
    return target


@pytest.mark.slow
def test_a_package_of_its_own_extends_volbench(installed: Path, tmp_path: Path) -> None:
    """Verb, finding, chart and format of the page are there once the package is installed."""
    half_finished(tmp_path / "results")

    def volbench(*arguments: str, path: Path = installed) -> str:
        environment = {**os.environ, "PYTHONPATH": str(path)}
        done = run(sys.executable, "-m", "volbench", *arguments, env=environment, cwd=tmp_path)
        return done.stdout + done.stderr

    assert "Print pages a second." in volbench("--help")
    assert re.fullmatch(r"(mix \d+\n)+", volbench("pages", "results"))
    assert "other-page" in volbench("check", "results", "--json")
    assert "other-page" not in volbench("check", "results", "--json", path=tmp_path)
    assert "pages" in volbench("plot", "--list")
    numbers = volbench("plot", "pages", "results", "--csv", "-", "-o", "pages.svg")
    assert "pages_per_s" in numbers.splitlines()[0]
    assert volbench("export", "results", "--format", "pages") == volbench("pages", "results")
    assert "pages" not in volbench("--help", path=tmp_path)


# Texts that have the name of an extension with another meaning
OTHER_MEANINGS = {
    ("analyse/bottleneck/volume_context.py", "kubernetes")  # what systemd calls a container
}


@pytest.mark.slow
def test_the_core_names_no_extension() -> None:
    """No import of the core, and no text beside docstrings, names an extension or its folder."""
    package = ROOT / "src/volbench"
    named = re.compile(rf"extensions[./]\w|^(?:{'|'.join(sorted(EXTENSIONS))})$")
    found = set[tuple[str, str]]()
    for path in package.rglob("*.py"):
        file = str(path.relative_to(package))
        if file.startswith("extensions/"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            texts = []
            if isinstance(node, ast.ImportFrom):
                texts = [node.module or ""]
            elif isinstance(node, ast.Import):
                texts = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts = [node.value]
            found.update((file, text) for text in texts if named.search(text))
    assert found == OTHER_MEANINGS
