"""Thresholds that nothing notices: each is moved up and down, and what its comment names is asked.

A comment names tests, which have to fail, or `benchmarks/truth.py`, whose answers on simulated
volumes have to change. A threshold is noticed if one of both directions is. Limits of a schema are
fixed when its module is imported, and cannot be moved here:

    .venv/bin/python benchmarks/thresholds.py analyse/time --factor 3
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.machinery
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.truth import judge
from benchmarks.truth_cases import Case, draw_case
from benchmarks.truth_views import Simulated, simulate

from volbench.analyse.bottleneck.campaign_context import Context

ROOT = Path(__file__).parents[1]
_SEEDS = range(96)  # every kind of cause with every noise, twice
_TRUTH = "truth.py"


def script() -> ModuleType:
    """Return `scripts/make-thresholds-table` as a module."""
    path = str(ROOT / "scripts" / "make-thresholds-table")
    loader = importlib.machinery.SourceFileLoader("make_thresholds_table", path)
    module = ModuleType(loader.name)
    module.__file__ = path
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def scaled(value: Any, factor: float) -> Any:  # noqa: ANN401 - numbers, tuples and mappings of them
    """Return a number, or all numbers of a tuple or mapping, times a factor."""
    match value:
        case int():
            times = value * factor
            return round(times) if round(times) != value else value + (1 if factor > 1 else -1)
        case float():
            return value * factor
        case tuple():
            return tuple(scaled(each, factor) for each in value)
        case dict():
            return {name: scaled(each, factor) for name, each in value.items()}
    return value


@contextlib.contextmanager
def moved(module: str, name: str, factor: float) -> Iterator[None]:
    """Replace a constant wherever it was imported."""
    home = importlib.import_module(f"volbench.{module.replace('/', '.')}")
    value = getattr(home, name)
    users = [
        user
        for key, user in list(sys.modules.items())
        if key.startswith("volbench") and vars(user).get(name) is value
    ]
    other = scaled(value, factor)
    for user in [home, *users]:
        setattr(user, name, other)
        replace_defaults(user, value, other)
    try:
        yield
    finally:
        for user in [home, *users]:
            setattr(user, name, value)
            replace_defaults(user, other, value)


def replace_defaults(module: ModuleType, old: object, new: object) -> None:
    """Replace a default of the functions and data classes of a module."""
    for member in vars(module).values():
        function = member.__init__ if isinstance(member, type) else member
        if isinstance(function, FunctionType):
            kept = function.__defaults__ or ()
            function.__defaults__ = tuple(new if each is old else each for each in kept) or None
            named = function.__kwdefaults__ or {}
            named.update({name: new for name, each in named.items() if each is old})


@cache
def cases() -> list[tuple[int, Case, Simulated, str]]:
    """Return simulated cases with what is said about each."""
    found = []
    for seed in _SEEDS:
        case = draw_case(seed)
        run = simulate(case)
        found.append((seed, case, run, answer(seed, case, run)))
    return found


def answer(seed: int, case: Case, run: Simulated) -> str:
    """Return what is said about a run now, without anything that was kept."""
    views = tuple(replace(view) for view in run.context.views)
    return repr(judge(seed, case, replace(run, context=Context(views), view=views[-1])))


def truth_notices() -> str:
    """Return the first case whose answer has changed; empty for none."""
    changed = (case for seed, case, run, said in cases() if answer(seed, case, run) != said)
    first = next(changed, None)
    return f"{first.kind}, noise {first.noise} %" if first else ""


def test_notices(reference: str) -> str:
    """Return the test if it, or one in its file, fails; empty if all pass."""
    name, _, function = reference.partition("::")
    paths = [
        path
        for path in (ROOT / "tests").rglob(name)
        if f"def {function}" in path.read_text(encoding="utf-8")
    ]
    ids = [f"{path}::{function}" if function else str(path) for path in paths]
    options = ["-q", "-x", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*options, *ids])
    return function or name if status == pytest.ExitCode.TESTS_FAILED else ""


def main() -> None:
    """Print what notices each threshold, and end with status 1 if nothing notices some."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names, as analyse/time or _MAX_FLASH_S")
    parser.add_argument("--factor", type=float, default=3.0)
    parser.add_argument("--truth", action="store_true", help="only those that name truth.py")
    options = parser.parse_args()
    silent = 0
    for each in script().thresholds():
        references = each.noticed_by.replace("`", "").split(", ")
        path = f"{each.module}/{each.name}"
        if options.names and not any(name in path for name in options.names):
            continue
        if options.truth and _TRUTH not in references:
            continue
        cases()
        noticed = {}
        for factor in (options.factor, 1 / options.factor):
            with moved(each.module, each.name, factor):
                by = (
                    truth_notices() if name == _TRUTH else test_notices(name) for name in references
                )
                noticed[f"x {factor:.3g}"] = next(filter(None, by), "nothing")
        silent += set(noticed.values()) == {"nothing"}
        print(f"{path}: {', '.join(' '.join(pair) for pair in noticed.items())}", flush=True)
    print(f"{silent} thresholds that nothing notices")
    sys.exit(bool(silent))


if __name__ == "__main__":
    main()
