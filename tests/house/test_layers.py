"""Imports only go down, and the tree is as the design shows it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# A package imports packages of lower floors only: none of its own floor, and none above. So what
# makes results (engine) and what shows them (present) do not know each other.
FLOORS = {
    "errors": 0,
    **dict.fromkeys(("units", "extension", "extras", "interrupts"), 1),
    "model": 2,
    **dict.fromkeys(("plan", "fio", "execute", "store", "analyse"), 3),
    "ingest": 4,
    **dict.fromkeys(("engine", "present"), 5),
    "api": 6,
    "cli": 7,
    "__main__": 8,
}
ANYWHERE = {"__version__"}  # a plain text that the package itself holds


def part_of(module: str) -> str:
    """Return the package right below volbench, or the extension; empty for volbench itself."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] == ["extensions"] else 1])


def imported(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield every volbench module that a tree imports, for types only or inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"{module} by a relative import"
        elif isinstance(node, ast.ImportFrom) and node.module == "volbench":
            yield from (f"volbench.{a.name}" for a in node.names if a.name not in ANYWHERE)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def breaches(sources: Mapping[str, ast.Module]) -> list[str]:
    """Return one sentence for each import that does not go down."""
    sentences = []
    for module, tree in sources.items():
        package = part_of(module)
        if package in {"", "extensions"}:  # volbench/__init__.py hands out the public names
            continue
        is_extension = package.startswith("extensions.")
        if package not in FLOORS and not is_extension:
            sentences.append(f"{module} stands on no floor")
            continue
        for target in imported(tree, module):
            below = part_of(target)
            if target.endswith("import"):
                sentences.append(f"{target}: write the full name")
            elif target.partition(".")[0] != "volbench" or below == package:
                continue
            elif FLOORS.get(below, 99) >= (99 if is_extension else FLOORS[package]):
                sentences.append(f"{module} imports {target}")
    return sentences


@pytest.mark.slow
def test_imports_only_go_down(sources: dict[str, ast.Module]) -> None:
    """No module of volbench imports from its own floor or from above."""
    assert breaches(sources) == []


def test_a_breach_is_found() -> None:
    """The checker sees breaches: upwards, sideways, lazy, type-only, relative, of extensions."""
    made_up = {
        "volbench.model.campaign.planned_run": "import volbench.engine.run.run_once",
        "volbench.fio.jobs.render_job": "def f():\n    from volbench.store import layout",
        "volbench.plan.profile.load_profile": (
            "if TYPE_CHECKING:\n    from volbench.fio.jobs.option_table import Table"
        ),
        "volbench.store.parquet_tables": "from volbench import api",
        "volbench.store.journal": "from . import layout",
        "volbench.ingest.block_rows": (
            "def f():\n    from volbench.extensions.lab.scenario import Scenario"
        ),
        "volbench.extensions.catalogue.price_list": (
            "from volbench.extensions.lab.scenario import Scenario"
        ),
        "volbench.engine.guard.run_guard": "from volbench.present.formatting import percent",
        "volbench.magic": "",
    }
    assert breaches(parsed(made_up)) == [
        "volbench.model.campaign.planned_run imports volbench.engine.run.run_once",
        "volbench.fio.jobs.render_job imports volbench.store",
        "volbench.plan.profile.load_profile imports volbench.fio.jobs.option_table",
        "volbench.store.parquet_tables imports volbench.api",
        "volbench.store.journal by a relative import: write the full name",
        "volbench.ingest.block_rows imports volbench.extensions.lab.scenario",
        "volbench.extensions.catalogue.price_list imports volbench.extensions.lab.scenario",
        "volbench.engine.guard.run_guard imports volbench.present.formatting",
        "volbench.magic stands on no floor",
    ]


def test_downward_imports_are_allowed() -> None:
    """The checker lets through what goes down, stays in a package or is the bare version."""
    made_up = {
        "volbench.engine.run.run_once": "from volbench.fio import render\nimport json",
        "volbench.fio.jobs.render_job": "from volbench.fio.jobs.option_table import table",
        "volbench.units": "from volbench.errors import InputError",
        "volbench.store.layout": "from volbench import __version__",
        "volbench.extensions.lab.server": "from volbench.cli.options import flag",
    }
    assert breaches(parsed(made_up)) == []


def parsed(texts: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return made-up modules as the source is read."""
    return {name: ast.parse(text) for name, text in texts.items()}


def import_graph(sources: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that each module imports, the package itself left out."""
    graph: dict[str, set[str]] = {module: set() for module in sources if "." in module}
    for module, targets in graph.items():
        for node in ast.walk(sources[module]):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = (f"{node.module}.{alias.name}" for alias in node.names)
                found = {name if name in graph else node.module for name in named}
                targets.update((found & graph.keys()) - {module})
    return graph


def test_there_are_no_import_cycles(sources: dict[str, ast.Module]) -> None:
    """No modules import each other, not even inside functions or for types only."""
    order = list(TopologicalSorter(import_graph(sources)).static_order())
    assert len(order) > 100


def test_an_import_cycle_is_found() -> None:
    """Two modules that import each other have no order."""
    made_up = {
        "volbench.fio.reader": "def f():\n    from volbench.fio.version import parse_version",
        "volbench.fio.version": "from volbench.fio import reader",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(parsed(made_up))).prepare()


def folder_graph(sources: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the folders that the modules of each folder import.

    A package without folders is one itself, as each extension is; beside folders, each module of a
    package stands for itself.
    """
    folders = {module.rpartition(".")[0] for module in sources}
    with_folders = {folder.rpartition(".")[0] for folder in folders} - {"volbench", ""}

    def folder_of(module: str) -> str:
        parent = module if module in folders else module.rpartition(".")[0]
        return module if parent in with_folders else parent

    graph: dict[str, set[str]] = {}
    for module, targets in import_graph(sources).items():
        folder = folder_of(module)
        graph.setdefault(folder, set()).update({folder_of(own) for own in targets} - {folder})
    graph.pop("volbench", None)
    return {folder: targets - {"volbench"} for folder, targets in graph.items()}


@pytest.mark.slow
def test_folders_import_downwards(sources: dict[str, ast.Module]) -> None:
    """No two folders import each other, not by way of others either."""
    order = list(TopologicalSorter(folder_graph(sources)).static_order())
    levels = ("frames", "time", "bottleneck", "findings")
    places = [order.index(f"volbench.analyse.{name}") for name in levels]
    assert places == sorted(places)


def test_a_cycle_of_folders_is_found() -> None:
    """Two folders whose different modules import each other have no order."""
    made_up = {
        "volbench.fio.jobs": "",
        "volbench.fio.jobs.render_job": "from volbench.fio.logs.log_rows import read_rows",
        "volbench.fio.jobs.option_table": "",
        "volbench.fio.logs": "",
        "volbench.fio.logs.log_rows": "",
        "volbench.fio.logs.section_logs": "from volbench.fio.jobs.option_table import table",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(folder_graph(parsed(made_up))).prepare()


MOST_FILES = 27
"""Modules in a folder, `__init__` left out."""


def module_paths(root: Path) -> list[Path]:
    """Return the path of every module below the package."""
    package = root / "src" / "volbench"
    return [path.relative_to(package) for path in sorted(package.rglob("*.py"))]


def test_two_modules_never_share_a_name(root: Path) -> None:
    """A module is found by its name alone."""
    places = defaultdict(list)
    for path in module_paths(root):
        if path.stem not in {"__init__", "__main__"}:
            places[path.stem].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_folders_are_small(root: Path) -> None:
    """No folder holds more modules than can be taken in at a glance."""
    counts: dict[str, int] = defaultdict(int)
    for path in module_paths(root):
        counts[str(path.parent)] += path.stem != "__init__"
    assert {name: count for name, count in counts.items() if count > MOST_FILES} == {}


def test_the_design_page_has_every_folder(root: Path) -> None:
    """Each folder stands in the design page, with what it holds."""
    page = (root / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    folders = {path.parent for path in module_paths(root)} - {Path()}
    shown = {str(folder) for folder in folders if f"`{folder}/`" in page}
    known = {str(folder) for folder in folders}
    partly = {name for name in known if re.search(rf"`{Path(name).name}/?`", page)}
    top = {name for name in known if "/" not in name}
    assert known - shown - partly - top == set()


def test_tests_are_in_the_folder_of_their_source(root: Path) -> None:
    """A folder of tests mirrors a source folder, or says directly below tests/ what it covers."""
    tests = root / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    sources = {path.parent for path in module_paths(root)}
    suites = {
        Path(path.parent.name)
        for path in tests.glob("*/__init__.py")
        if path.read_text(encoding="utf-8").startswith('"""Suite of ')
    }
    assert folders - sources - suites == set()
    assert suites & sources == set()


def test_tests_of_the_root_are_those_of_its_modules(root: Path) -> None:
    """A test directly below tests/ belongs to a module directly below the package."""
    modules = {path.stem for path in module_paths(root) if path.parent == Path()}
    tests = {path.stem.removeprefix("test_") for path in (root / "tests").glob("test_*.py")}
    assert tests - modules == set()


def test_no_test_imports_from_another(root: Path) -> None:
    """What several test modules use is a module of its own, which is no test."""
    importing = re.compile(r"^ *from tests[.\w]*\.test_\w+ import", re.MULTILINE)
    tests = (root / "tests").rglob("*.py")
    users = [path.name for path in tests if importing.search(path.read_text(encoding="utf-8"))]
    assert users == []
