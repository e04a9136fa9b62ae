"""Imports only go down: from a floor to the floors below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

FLOORS = {
    "errors": 1,
    "units": 1,
    "seams": 1,
    "model": 2,
    "plan": 3,
    "fio": 3,
    "execute": 3,
    "store": 3,
    "analyse": 3,
    "engine": 4,
    "ingest": 4,
    "present": 4,
    "cli": 5,
    "api": 5,
    "__main__": 6,
}
SAME_FLOOR = {
    ("engine", "ingest"),  # the engine reads the output of a run through the one reader
    ("cli", "api"),  # the command line reads and runs as any Python program does
    ("seams", "errors"),  # an absent slice is reported with the one error tree
    ("units", "errors"),  # bad units are reported with the one error tree
}
SLICES = {"kubernetes", "catalogue", "importer", "lab", "monitoring", "object_storage"}
ANYWHERE = {"__version__"}  # a plain text that the package itself holds


def part_of(module: str) -> str:
    """Return the package or module right below volbench, or an empty text for volbench itself."""
    return module.partition(".")[2].partition(".")[0]


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
    found = []
    for module, tree in sources.items():
        here = part_of(module)
        if here in SLICES:
            continue
        if not here:  # volbench/__init__.py hands out the public names
            continue
        if here not in FLOORS:
            found.append(f"{module} stands on no floor")
            continue
        for target in imported(tree, module):
            if target.endswith("import"):
                found.append(f"{target}: write the full name")
            if target.partition(".")[0] != "volbench" or part_of(target) == here:
                continue
            there = part_of(target)
            if there in SLICES:
                continue
            if FLOORS.get(there, 9) >= FLOORS[here] and (here, there) not in SAME_FLOOR:
                found.append(f"{module} imports {target}")
    return found


def test_imports_only_go_down(sources: dict[str, ast.Module]) -> None:
    """No module of volbench imports from its own floor or from above."""
    assert breaches(sources) == []


def test_a_breach_is_found() -> None:
    """The checker sees breaches: upwards, sideways, lazy, type-only, relative and unplaced."""
    made_up = {
        "volbench.model.campaign.planned_run": "import volbench.engine.run.run_once",
        "volbench.fio.jobs.render_job": "def f():\n    from volbench.store import layout",
        "volbench.plan.profile.load_profile": (
            "if TYPE_CHECKING:\n    from volbench.fio.jobs.option_table import Table"
        ),
        "volbench.store.parquet_tables": "from volbench import api",
        "volbench.store.journal": "from . import layout",
        "volbench.magic": "",
    }
    assert breaches({name: ast.parse(text) for name, text in made_up.items()}) == [
        "volbench.model.campaign.planned_run imports volbench.engine.run.run_once",
        "volbench.fio.jobs.render_job imports volbench.store",
        "volbench.plan.profile.load_profile imports volbench.fio.jobs.option_table",
        "volbench.store.parquet_tables imports volbench.api",
        "volbench.store.journal by a relative import: write the full name",
        "volbench.magic stands on no floor",
    ]


def test_downward_imports_are_no_breach() -> None:
    """The checker lets through what goes down, stays in a package or is the bare version."""
    made_up = {
        "volbench.engine.run.run_once": "from volbench.fio import render\nimport json",
        "volbench.fio.jobs.render_job": "from volbench.fio.jobs.option_table import table",
        "volbench.units": "from volbench.errors import InputError",
        "volbench.store.layout": "from volbench import __version__",
    }
    assert breaches({name: ast.parse(text) for name, text in made_up.items()}) == []


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


def test_there_is_no_import_circle(sources: dict[str, ast.Module]) -> None:
    """No modules import each other, not even inside functions or for types only."""
    order = list(TopologicalSorter(import_graph(sources)).static_order())
    assert len(order) > 100


def test_a_circle_is_found() -> None:
    """Two modules that import each other have no order."""
    made_up = {
        "volbench.fio.dd": "def f():\n    from volbench.fio.version import parse_version",
        "volbench.fio.version": "from volbench.fio import dd",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(
            import_graph({name: ast.parse(text) for name, text in made_up.items()})
        ).prepare()


def folder_graph(sources: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the folders that the modules of each folder import; a module in a package is itself.

    A slice is one folder, whatever it holds.
    """
    graph: dict[str, set[str]] = {}

    def folder_of(module: str) -> str:
        if part_of(module) in SLICES:
            return part_of(module)
        is_folder = any(name.startswith(f"{module}.") for name in sources)
        return module if is_folder else module.rpartition(".")[0]

    for module, targets in import_graph(sources).items():
        here = folder_of(module)
        if here == "volbench":
            continue
        found = {folder_of(target) for target in targets}
        graph.setdefault(here, set()).update(found - {here, "volbench"})
    return graph


def test_folders_of_reading_import_downwards(sources: dict[str, ast.Module]) -> None:
    """No two folders of the packages that read results import each other."""
    reading = ("volbench.analyse", "volbench.fio", "volbench.ingest", "volbench.store")
    graph = {
        folder: {target for target in targets if target.startswith(reading)}
        for folder, targets in folder_graph(sources).items()
        if folder.startswith(reading)
    }
    order = list(TopologicalSorter(graph).static_order())
    levels = ("frames", "time", "bottleneck", "findings")
    places = [order.index(f"volbench.analyse.{name}") for name in levels]
    assert places == sorted(places)


def test_a_circle_of_folders_is_found() -> None:
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
        TopologicalSorter(
            folder_graph({name: ast.parse(text) for name, text in made_up.items()})
        ).prepare()
