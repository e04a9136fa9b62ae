#!/usr/bin/env python3
"""Print the test modules whose imports reach a file that differs from a commit.

Use it as: scripts/changed_tests.py [COMMIT], by default HEAD. Untracked files count as changed. In
a test, text that names a module (``volbench.units:parse_size``) counts as an import, and so do the
name of a verb and the fixtures of a conftest.py. A changed file that is not Python selects the
tests that name it or its folder, and tests/house.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = re.compile(r"volbench(?:\.\w+)+")
VERB = re.compile(r'^\s*"([a-z0-9-]+)": \(?\s*"([\w.]+):?\w*"', re.MULTILINE)
Graph = dict[str, set[str]]  # module to the modules that it names


def find_modules() -> dict[str, Path]:
    """Return the files of the package and of the tests by module name."""
    found = {}
    for top, folder in (("volbench", ROOT / "src"), ("tests", ROOT)):
        for path in (folder / top).rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def find_verbs(known: Mapping[str, Path]) -> dict[str, str]:
    """Return the module of each verb, from the tables that name them as text."""
    found = {}
    for path in known.values():
        for verb, module in VERB.findall(path.read_text(encoding="utf-8")):
            name = f"volbench.{module.removeprefix('volbench.')}"
            if name in known:
                found[verb] = name
    return found


def imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each module that a tree imports, with the local name; not those for types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                yield alias.asname or alias.name, child.module
                yield alias.asname or alias.name, f"{child.module}.{alias.name}"
        else:
            yield from imports(child)


def fixture_modules(path: Path) -> dict[str, set[str]]:
    """Return the modules that each fixture of a conftest.py uses; "" is for all of its tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = list(imports(tree))
    found: dict[str, set[str]] = {"": set()}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            is_for_all = any("autouse=True" in ast.unparse(d) for d in function.decorator_list)
            modules = {module for name, module in names if name in used}
            found.setdefault("" if is_for_all else function.name, set()).update(modules)
    return found


def named_in_test(path: Path, verbs: Mapping[str, str]) -> set[str]:
    """Return the modules and fixtures that a test names by text, as a verb or as an argument."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = REFERENCE.findall(node.value)
            found |= {verbs.get(node.value, ""), *named, *(m.rpartition(".")[0] for m in named)}
    return found


def make_graph(known: Mapping[str, Path]) -> Graph:
    """Return the modules that each module names; importing one runs the packages around it."""
    verbs = find_verbs(known)
    fixtures = {
        name: fixture_modules(path) for name, path in known.items() if path.name == "conftest.py"
    }
    graph: Graph = {}
    for name, path in known.items():
        packages = [name.rsplit(".", count)[0] for count in range(1, name.count(".") + 1)]
        graph[name] = set(packages)
        if name in fixtures:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        graph[name] |= {module for _, module in imports(tree)}
        if name.startswith("tests."):
            words = named_in_test(path, verbs)
            graph[name] |= words
            for conftest in (f"{package}.conftest" for package in packages):
                for fixture, modules in fixtures.get(conftest, {}).items():
                    graph[name] |= {conftest} | (
                        modules if not fixture or fixture in words else set()
                    )
    return {name: (named & known.keys()) - {name} for name, named in graph.items()}


def reaching(graph: Graph, targets: set[str]) -> set[str]:
    """Return the modules from which a target is reached, and the targets."""
    seen = set(targets)
    while more := {name for name, named in graph.items() if named & seen} - seen:
        seen |= more
    return seen


def changed_files(commit: str) -> set[Path]:
    """Return the files that differ from a commit, deleted and untracked ones too."""
    lines: list[str] = []
    for command in (
        ["git", "diff", "--name-only", commit, "--"],
        ["git", "ls-files", "--others", "--exclude-standard"],
    ):
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        lines += done.stdout.splitlines()
    return {ROOT / line for line in lines}


def select(known: Mapping[str, Path], files: set[Path]) -> set[str]:
    """Return the test modules that depend on one of the files."""
    names = {path: name for name, path in known.items()}
    selected = reaching(make_graph(known), {names[path] for path in files & names.keys()})
    tests = {name for name, path in known.items() if path.name.startswith("test_")}
    for path in files - names.keys():
        words = {path.name, f'"{path.stem}"', f"{path.parent.name}/"}
        selected |= {
            name
            for name in tests
            if name.startswith("tests.house.")
            or any(word in known[name].read_text(encoding="utf-8") for word in words)
        }
    return tests & selected


def main(commit: str = "HEAD") -> None:
    """Print the path of each selected test module on a line."""
    known = find_modules()
    for name in sorted(select(known, changed_files(commit))):
        print(known[name].relative_to(ROOT))  # noqa: T201 - its purpose


if __name__ == "__main__":
    main(*sys.argv[1:])
