"""What holds for every test: nothing leaks, and those marked `root` need root and devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_PYTEST_OWN = {"PYTEST_CURRENT_TEST"}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _PYTEST_OWN}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that makes devices where that can't be done."""
    places = Path("/dev/loop-control"), Path("/sys/dev/block")
    can = os.geteuid() == 0 and all(place.exists() for place in places)
    if item.get_closest_marker("root") and not can:
        pytest.skip("needs root and loop devices")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves another environment or working directory behind."""
    environment, folder = _environment(), Path.cwd()
    yield
    leaks = []
    left, left_folder = _environment(), Path.cwd()
    if left_folder != folder:
        os.chdir(folder)
        leaks.append(f"working directory {left_folder}")
    leaks.extend(
        f"{name}={left.get(name)!r}, was {environment.get(name)!r}"
        for name in sorted(environment.keys() | left.keys())
        if environment.get(name) != left.get(name)
    )
    if leaks:
        for name in left.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        pytest.fail("the test leaked: " + "; ".join(leaks))
