"""Tables of simulated volumes: the bundled scenarios, and the facts and true results of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from volbench.lab.expected_results import Direction, Truth, truth
from volbench.lab.scenario import Scenario
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


def _truth_rows(scenario: Scenario) -> list[dict[str, str]]:
    named = [(expected.rw, expected.bs, expected.iodepth) for expected in scenario.truth]
    return [
        _row(
            direction,
            block_bytes,
            iodepth,
            truth(scenario, direction=direction, block_bytes=block_bytes, iodepth=iodepth),
        )
        for direction, block_bytes, iodepth in sorted({*_USUAL, *named})
    ]


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


def scenario_tables(scenario: Scenario) -> tuple[Table[Any], Table[Any]]:
    """Return the facts of a scenario, and the results that a measurement must find.

    JSON of the first holds both.
    """
    facts, truth = _facts(scenario), _truth_rows(scenario)
    document = {
        "scenario": scenario.name,
        "description": scenario.description,
        "facts": facts,
        "truth": truth,
    }
    about = facts_table(f"{scenario.name}: {scenario.description}", facts)
    return replace(about, document=document), _truth_table(truth)


def _truth_table(rows: Sequence[Mapping[str, str]]) -> Table[Any]:
    return text_table(
        "truth",
        rows,
        identity="rw",
        priorities=_PRIORITIES,
        right=[name for row in rows[:1] for name in row if name not in _WORDS],
    )


def _row(direction: str, block_bytes: int, iodepth: int, found: Truth) -> dict[str, str]:
    fast = found.fast_for_s < inf
    return {
        "rw": direction,
        "bs": format_size(block_bytes),
        "iodepth": str(iodepth),
        "IOPS": format_count(found.iops),
        "bandwidth": format_rate(found.bw_bytes_per_s),
        "latency": format_latency(found.lat_mean_s),
        "bottleneck": found.bottleneck,
        "cold IOPS": format_count(found.cold_iops) if found.penalty else "",
        "penalty": f"{found.penalty:.1%}" if found.penalty else "",
        "90 % after": format_duration(found.warm_90_s) if found.penalty else "",
        "at first": f"{format_count(found.fast_iops)} for {format_duration(found.fast_for_s)}"
        if fast
        else "",
        "stall": format_duration(found.stall_s) if found.stall_s else "",
    }


def _facts(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {
        "size": format_capacity(scenario.size_bytes),
        "initial content": "data in every block" if scenario.restored else "nothing",
        "concurrent requests": scenario.service.slots or "any number",
    }
    if scenario.first_write_s or scenario.first_read_s:
        facts["block"] = format_size(scenario.block_bytes)
        facts |= _first_touches(scenario)
        facts["blocks prepared concurrently"] = scenario.first_touch.parallel or "any number"
    if scenario.unwritten_reads == "instant":
        facts["reads of unwritten blocks"] = "answered at once"
    return facts | _limits(scenario) | _flash(scenario) | _events(scenario) | _noise(scenario)


def _flash(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    if scenario.ssd is None:
        return facts
    if slc := scenario.ssd.slc_cache:
        facts["SLC cache"] = f"{format_capacity(slc.size_bytes)}, then {slc.after:.0%} of the speed"
    if collection := scenario.ssd.garbage_collection:
        facts["garbage collection"] = (
            f"after {format_capacity(collection.spare_bytes)}, {collection.speed:.0%} of the speed"
        )
    if thermal := scenario.ssd.thermal:
        facts["thermal throttling"] = (
            f"after {format_duration(thermal.after_s)}, {thermal.speed:.0%} of the speed"
        )
    if ramp := scenario.ssd.ramp_up:
        facts["ramp-up"] = f"from {ramp.start:.0%} of the speed in {format_duration(ramp.for_s)}"
    return facts


def _noise(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    if scenario.noise is None:
        return facts
    if jitter := scenario.noise.jitter:
        facts["jitter"] = f"{jitter.size:.0%} of the {jitter.of}'s speed"
    bursts = {"neighbour": scenario.noise.neighbour, "stolen CPU time": scenario.noise.steal}
    return facts | {
        name: f"{burst.share:.0%} for {format_duration(burst.length_s)}, some every"
        f" {format_duration(burst.every_s)}"
        for name, burst in bursts.items()
        if burst
    }


def _first_touches(scenario: Scenario) -> dict[str, object]:
    costs = {"write": scenario.first_write_s, "read": scenario.first_read_s}
    return {
        f"first {direction} of a block": f"{format_latency(cost_s)} more"
        for direction, cost_s in costs.items()
        if cost_s
    }


def _limits(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    if scenario.limits.iops:
        facts["IOPS limit"] = format_count(scenario.limits.iops)
    if scenario.limits.bandwidth_bytes_per_s:
        facts["bandwidth limit"] = format_rate(scenario.limits.bandwidth_bytes_per_s)
    if iops := scenario.burst.iops:
        facts["IOPS credits"] = (
            f"{format_count(iops.credits)}: {format_count(iops.to)} while they last, "
            f"then {format_count(iops.baseline)}"
        )
    if volume := scenario.burst.bandwidth:
        facts["bandwidth credits"] = (
            f"{format_capacity(volume.credits)}: {format_rate(volume.to)} while they last, "
            f"then {format_rate(volume.baseline)}"
        )
    if cache := scenario.cache:
        end = (
            f"stalls until {format_capacity(cache.resume_bytes)}"
            if cache.resume_bytes
            else "drains"
        )
        facts["write-back cache"] = (
            f"{format_capacity(cache.size_bytes)}, "
            f"empties at {format_rate(cache.drain_bytes_per_s)}, "
            f"takes a write in {format_latency(cache.latency_s)}, {end} when full"
        )
    return facts


def _events(scenario: Scenario) -> dict[str, object]:
    facts: dict[str, object] = {}
    for number, stall in enumerate(scenario.stalls, 1):
        facts[f"stall {number}"] = f"{stall.at_s:g} s to {stall.at_s + stall.length_s:g} s"
    for number, step in enumerate(scenario.steps, 1):
        facts[f"step {number}"] = f"{step.to:.0%} of the speed from {step.at_s:g} s on"
    if scenario.drift_percent_per_minute:
        facts["drift"] = f"{scenario.drift_percent_per_minute:+g} % of the speed a minute"
    return facts
