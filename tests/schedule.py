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
    from collections.abc import Mapping

    import pytest

CLUSTER = "kubernetes"
"""Marker of the tests that share one cluster, which one worker starts; also their scope."""
NAMES_CLUSTER = re.compile(rf"mark\.{CLUSTER}\b|\bcluster: LocalCluster")
LATEST = {"fleet": 0.5, "browser": 0.8, "slow": 0.8, "nightly": 0.8}
"""Markers of tests that take long or wait, to the share of all modules behind which none begins.

A worker that began with minutes of waiting last would be the only one at work in the end.
"""


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def uses_cluster(module: str) -> bool:
    """Return whether a module names the marker of the cluster, or its fixture."""
    path = Path(__file__).parents[1] / module
    return path.is_file() and NAMES_CLUSTER.search(path.read_text(encoding="utf-8")) is not None


def arrange(modules: Mapping[str, float]) -> list[str]:
    """Return modules in the order in which workers take them.

    The cluster comes first, since it takes longest; then modules that wait, evenly among others.

    Args:
        modules: name of each module, and the share of all behind which it does not begin.
    """
    first = [name for name in modules if uses_cluster(name)]
    rest = {name: latest for name, latest in modules.items() if name not in first}
    places = []
    for end in {*rest.values()}:
        names = [name for name, latest in rest.items() if latest == end]
        places += [(end * (n + 1) / (len(names) + 1), name) for n, name in enumerate(names)]
    return first + [name for _, name in sorted(places)]


def sort_for_workers(items: list[pytest.Item]) -> None:
    """Sort tests by module, in the order of `arrange`; those of a module keep their order."""
    modules: dict[str, float] = {}
    for item in items:
        name = _module(item.nodeid)
        ends = [end for marker, end in LATEST.items() if item.get_closest_marker(marker)]
        modules[name] = min([*ends, modules.get(name, 1.0)])
    rank = {name: place for place, name in enumerate(arrange(modules))}
    items.sort(key=lambda item: rank[_module(item.nodeid)])


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker that has nothing left to do the next module, and one worker the cluster."""

    def _split_scope(self, nodeid: str) -> str:
        module = _module(nodeid)
        return CLUSTER if uses_cluster(module) else module
