"""The tree: module names are unique, folders are small, and tests mirror them."""

import re
from collections import defaultdict
from pathlib import Path

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
