"""Tables of simulated volumes: the bundled scenarios, and the true results of one."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from volbench.extensions.lab.expected_results import Direction, Truth, truth
from volbench.extensions.lab.scenario import Scenario
from volbench.present.formatting import first_sentence
from volbench.present.tables.table import IDENTITY, Table, text_table
from volbench.units import (
    format_capacity,
    format_count,
    format_duration,
    format_latency,
    format_rate,
    format_size,
)

# Workloads reported for every scenario: direction, block size, queue depth
_USUAL: tuple[tuple[Direction, int, int], ...] = (
    ("read", 4096, 1),
    ("read", 4096, 16),
    ("read", 262144, 8),
    ("write", 4096, 1),
    ("write", 4096, 16),
    ("write", 262144, 8),
)
_WORDS = ("rw", "bs", "bottleneck", "at first")
_PRIORITIES = {
    **dict.fromkeys(("bs", "iodepth"), IDENTITY),
    **dict.fromkeys(("cold IOPS", "penalty", "90 % after", "at first", "stall"), 3),
    "bandwidth": 4,
}


def scenarios_table(scenarios: Sequence[Scenario]) -> Table[Any]:
    """Return a row for each scenario, with the first sentence of its description."""
    rows = [
        {
            "scenario": scenario.name,
            "size": format_capacity(scenario.size_bytes),
            "description": first_sentence(scenario.description),
        }
        for scenario in scenarios
    ]
    return text_table(
        "scenarios", rows, identity="scenario", right=["size"], folded=["description"]
    )


def truth_table(scenario: Scenario) -> Table[Any]:
    """Return the results that a measurement of a scenario must find."""
    named = [(expected.rw, expected.bs, expected.iodepth) for expected in scenario.truth]
    rows = [
        _row(rw, bs, iodepth, truth(scenario, direction=rw, block_bytes=bs, iodepth=iodepth))
        for rw, bs, iodepth in sorted({*_USUAL, *named})
    ]
    return text_table(
        "truth",
        rows,
        identity="rw",
        priorities=_PRIORITIES,
        right=[name for name in rows[0] if name not in _WORDS],
        title=f"{scenario.name}: {scenario.description}",
    )


def _row(direction: str, block_bytes: int, iodepth: int, expected: Truth) -> dict[str, str]:
    has_penalty = bool(expected.penalty)
    return {
        "rw": direction,
        "bs": format_size(block_bytes),
        "iodepth": str(iodepth),
        "IOPS": format_count(expected.iops),
        "bandwidth": format_rate(expected.bw_bytes_per_s),
        "latency": format_latency(expected.lat_mean_s),
        "bottleneck": expected.bottleneck,
        "cold IOPS": format_count(expected.cold_iops) if has_penalty else "",
        "penalty": f"{expected.penalty:.1%}" if has_penalty else "",
        "90 % after": format_duration(expected.warm_90_s) if has_penalty else "",
        "at first": f"{format_count(expected.fast_iops)} for {format_duration(expected.fast_for_s)}"
        if expected.fast_for_s < inf
        else "",
        "stall": format_duration(expected.stall_s) if expected.stall_s else "",
    }
