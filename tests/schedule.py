"""Order in which xdist's workers take the tests: whole modules, the cluster and long waits first.

A module stays on one worker, so that its fixtures are made once.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest

CLUSTER = "kubernetes"
"""Marker of the tests that share one cluster, which one worker starts; also their scope."""
NAMES_CLUSTER = re.compile(rf"mark\.{CLUSTER}\b|\bcluster: LocalCluster")
WAITING = ("browser", "fleet", "slow", "nightly")
"""Markers of tests that wait most of the time, and leave a core to other workers."""


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def uses_cluster(module: str) -> bool:
    """Return whether a module names the marker of the cluster, or its fixture."""
    path = Path(__file__).parents[1] / module
    return path.is_file() and NAMES_CLUSTER.search(path.read_text(encoding="utf-8")) is not None


def arrange(modules: dict[str, bool]) -> list[str]:
    """Return modules in the order in which workers take them.

    The cluster comes first, since it takes longest; then modules that wait, evenly among others.

    Args:
        modules: name of each module, and whether it waits.
    """
    first = [name for name in modules if uses_cluster(name)]
    rest = {name: waits for name, waits in modules.items() if name not in first}
    places = []
    for kind in (True, False):
        names = [name for name, waits in rest.items() if waits is kind]
        places += [((index + 1) / (len(names) + 1), name) for index, name in enumerate(names)]
    return first + [name for _, name in sorted(places)]


def sort_for_workers(items: list[pytest.Item]) -> None:
    """Sort tests by module, in the order of `arrange`; those of a module keep their order."""
    modules: dict[str, bool] = {}
    for item in items:
        waits = any(item.get_closest_marker(marker) for marker in WAITING)
        modules[_module(item.nodeid)] = modules.get(_module(item.nodeid), False) or waits
    rank = {name: place for place, name in enumerate(arrange(modules))}
    items.sort(key=lambda item: rank[_module(item.nodeid)])


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker that has nothing left to do the next module, and one worker the cluster."""

    def _split_scope(self, nodeid: str) -> str:
        module = _module(nodeid)
        return CLUSTER if uses_cluster(module) else module
