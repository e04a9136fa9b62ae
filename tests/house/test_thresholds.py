"""Thresholds say where they come from and which test or benchmark would notice if they moved."""

import ast
import importlib.machinery
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

REASONED = ("analyse/",)  # packages in which every number on the level of a module is a threshold
NOT_A_THRESHOLD = re.compile(r"_(FIELDS|DIGITS|WRAP|STEAL|NAMED|LINES|STALLS|90|95|WEIGHT)$")
KNOWN = frozenset(
    {
        *("SECTOR_BYTES", "_MIB", "_ROUND_IOPS", "MAX_TIME_S", "_MAX_RUNTIME_S", "_MIN_WHOLE"),
        *("_PERCENTILES", "_BIAS", "_LOAD_INTERVAL_S"),
    }
)
"""Numbers that are units, formats or mathematics."""


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    """Return the script that makes the table, as a module."""
    path = str(root / "scripts" / "make-thresholds-table")
    loader = importlib.machinery.SourceFileLoader("make_thresholds_table", path)
    spec = importlib.util.spec_from_loader("make_thresholds_table", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_table_is_current(root: Path, script: ModuleType) -> None:
    """The page holds the table that the script prints."""
    page = (root / "benchmarks" / "THRESHOLDS.md").read_text(encoding="utf-8")
    assert script.table() in page, "run: .venv/bin/python scripts/make-thresholds-table --write"


def test_every_test_or_benchmark_named_by_a_threshold_exists(
    root: Path, script: ModuleType
) -> None:
    """Each named test is a function in a file of that name, each benchmark a file."""
    files = [*(root / "tests").rglob("*.py"), *(root / "benchmarks").rglob("*.py")]
    texts: dict[str, list[str]] = {}
    for path in files:
        texts.setdefault(path.name, []).append(path.read_text(encoding="utf-8"))
    missing = []
    for threshold in script.thresholds():
        for reference in re.findall(r"`([^`]+)`", threshold.noticed_by):
            name, _, function = reference.partition("::")
            if not any(f"def {function}" in text for text in texts.get(name, ())):
                missing.append(f"{threshold.module}: {threshold.name}: {reference}")
    assert missing == []


def is_number(node: ast.expr) -> bool:
    """Return whether an expression is a number, or a tuple or mapping of numbers."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return bool(parts) and all(map(is_number, parts))
    return False


def test_every_number_of_the_analysis_has_a_reason(
    sources: dict[str, ast.Module], script: ModuleType
) -> None:
    """No verdict rests on a number that nobody explained and nothing would miss."""
    explained = {(each.module, each.name) for each in script.thresholds()}
    silent = []
    for module, tree in sources.items():
        place = module.removeprefix("volbench.").replace(".", "/")
        if not place.startswith(REASONED):
            continue
        for node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Name):
                name = target.id
                is_plain = NOT_A_THRESHOLD.search(name) or name in KNOWN
                if is_number(node.value) and not is_plain and (place, name) not in explained:
                    silent.append(f"{module}.{name}")
    assert silent == []
