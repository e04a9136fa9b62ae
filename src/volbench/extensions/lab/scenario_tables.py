"""Tables of simulated volumes: the bundled scenarios, and the facts and true results of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from volbench.extensions.lab.expected_results import Direction, Truth, truth
from volbench.extensions.lab.scenario import NoiseBlock, Scenario
from volbench.present.formatting import first_sentence
from volbench.present.tables.hosts_tables import facts_table
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


def _truth_rows(scenario: Scenario) -> list[dict[str, str]]:
    named = [(expected.rw, expected.bs, expected.iodepth) for expected in scenario.truth]
    return [
        _row(rw, bs, iodepth, truth(scenario, direction=rw, block_bytes=bs, iodepth=iodepth))
        for rw, bs, iodepth in sorted({*_USUAL, *named})
    ]


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


def scenario_tables(scenario: Scenario) -> tuple[Table[Any], Table[Any]]:
    """Return the facts of a scenario, and the results that a measurement must find.

    JSON of the first holds both.
    """
    facts, rows = _facts(scenario), _truth_rows(scenario)
    document = {
        "scenario": scenario.name,
        "description": scenario.description,
        "facts": facts,
        "truth": rows,
    }
    about = facts_table(f"{scenario.name}: {scenario.description}", facts)
    right = [name for name in rows[0] if name not in _WORDS]
    expected = text_table("truth", rows, identity="rw", priorities=_PRIORITIES, right=right)
    return replace(about, document=document), expected


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


def _facts(scenario: Scenario) -> dict[str, object]:
    any_number = "any number"
    facts: dict[str, object] = {
        "size": format_capacity(scenario.size_bytes),
        "initial content": "data in every block" if scenario.restored else "nothing",
        "concurrent requests": scenario.service.slots or any_number,
    }
    costs = {"write": scenario.first_write_s, "read": scenario.first_read_s}
    if any(costs.values()):
        facts["block"] = format_size(scenario.block_bytes)
        for direction, cost_s in costs.items():
            if cost_s:
                facts[f"first {direction} of a block"] = f"{format_latency(cost_s)} more"
        facts["blocks prepared concurrently"] = scenario.first_touch.parallel or any_number
    if scenario.unwritten_reads == "instant":
        facts["reads of unwritten blocks"] = "answered at once"
    return facts | _limits(scenario) | _events(scenario) | _noise(scenario)


def _limits(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    if scenario.limits.iops:
        facts["IOPS limit"] = format_count(scenario.limits.iops)
    if scenario.limits.bandwidth_bytes_per_s:
        facts["bandwidth limit"] = format_rate(scenario.limits.bandwidth_bytes_per_s)
    for name, burst, rate, amount in (
        ("IOPS credits", scenario.burst.iops, format_count, format_count),
        ("bandwidth credits", scenario.burst.bandwidth, format_rate, format_capacity),
    ):
        if burst:
            facts[name] = (
                f"{amount(burst.credits)}: {rate(burst.to)} while they last, "
                f"then {rate(burst.baseline)}"
            )
    if cache := scenario.cache:
        resume = cache.resume_bytes
        facts["write-back cache"] = (
            f"{format_capacity(cache.size_bytes)}, "
            f"empties at {format_rate(cache.drain_bytes_per_s)}, "
            f"takes a write in {format_latency(cache.latency_s)}, "
            f"{f'stalls until {format_capacity(resume)}' if resume else 'drains'} when full"
        )
    return facts


def _events(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    if slower := scenario.slower:
        after = format_capacity(slower.after_bytes)
        facts["slower writes"] = f"{slower.to:.0%} of the speed after {after}"
    for number, stall in enumerate(scenario.stalls, 1):
        facts[f"stall {number}"] = f"{stall.at_s:g} s to {stall.at_s + stall.length_s:g} s"
    for number, step in enumerate(scenario.steps, 1):
        facts[f"step {number}"] = f"{step.to:.0%} of the speed from {step.at_s:g} s on"
    if scenario.drift_percent_per_minute:
        facts["drift"] = f"{scenario.drift_percent_per_minute:+g} % of the speed a minute"
    return facts


def _noise(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    noise = scenario.noise or NoiseBlock()
    if noise.jitter:
        facts["jitter"] = f"{noise.jitter.size:.0%} of the {noise.jitter.of}'s speed"
    for name, burst in (("neighbour", noise.neighbour), ("stolen CPU time", noise.steal)):
        if burst:
            length, pause = format_duration(burst.length_s), format_duration(burst.every_s)
            facts[name] = f"{burst.share:.0%} for {length}, some every {pause}"
    return facts
