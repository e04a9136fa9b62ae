"""Order in which xdist's workers take the tests: whole modules, the slowest first.

A module stays on one worker, so that its fixtures are made once. What takes longest begins first,
so that no worker waits for another in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest

SECONDS = {
    "tests/browser/test_page.py": 160,
    "tests/house/test_tutorial.py": 100,
    "tests/browser/test_charts.py": 75,
    "tests/fleet/test_campaigns.py": 75,
    "tests/fleet/test_lost_hosts.py": 75,
    "tests/fleet/test_start.py": 75,
    "tests/cli/test_replaced_targets.py": 55,
    "tests/cli/test_run.py": 55,
    "tests/engine/campaign/test_round_stopping.py": 55,
    "tests/engine/campaign/test_clients.py": 52,
    "tests/torture/test_torture.py": 52,
    "tests/cli/test_loopback_fleet.py": 43,
    "tests/present/plots/test_every_kind.py": 40,
    "tests/cli/test_snia_profiles.py": 35,
    "tests/cli/test_check_device.py": 33,
    "tests/cli/test_verbs.py": 30,
    "tests/cli/test_warmup.py": 30,
    "tests/fleet/test_detach.py": 28,
    "tests/engine/conditioning/test_cold_probe.py": 27,
    "tests/house/test_readme.py": 27,
    "tests/fleet/test_ssh_faults.py": 26,
    "tests/cli/test_wipe_confirmation.py": 25,
    "tests/extensions/lab/test_server.py": 25,
    "tests/browser/test_view.py": 24,
    "tests/fleet/test_ssh_commands.py": 23,
    "tests/cli/test_being_ended.py": 23,
    "tests/cli/test_plot.py": 22,
    "tests/cli/test_plot_storm.py": 22,
    "tests/house/test_light.py": 21,
    "tests/api/test_documented_notebooks.py": 21,
    "tests/cli/test_failures.py": 16,
    "tests/fleet/test_sessions.py": 15,
    "tests/engine/run/test_until_runs.py": 15,
    "tests/present/report/test_several_campaigns.py": 13,
    "tests/house/test_wheel.py": 12,
    "tests/engine/guard/test_device_content.py": 12,
}
"""About how long a module takes beside others, or a test of a module in `_APART`.

Only the order counts. Modules that are not listed take less, and come last in random order.
"""
_APART = {
    "tests/fleet/test_campaigns.py",
    "tests/fleet/test_lost_hosts.py",
    "tests/fleet/test_start.py",
}
"""Modules of long tests that share nothing, and may therefore run on several workers."""


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def sort_slowest_first(items: list[pytest.Item]) -> None:
    """Sort tests by the time that their module takes, and else leave their order."""
    items.sort(key=lambda item: -SECONDS.get(_module(item.nodeid), 0))


class ModuleScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker that has nothing left to do the next module, or the next long test."""

    def _split_scope(self, nodeid: str) -> str:
        module = _module(nodeid)
        return nodeid if module in _APART else module
