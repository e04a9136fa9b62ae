"""Duets: the arms of a block at the same time, where their volumes share nothing that is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from volbench.errors import InputError, RefusedError
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.profile_model import Order, Start
from volbench.model.results.provenance import VolumeFacts

_HINT = "leave out order: duets (--order duets)"
_Arm = tuple[str, str]
"""An arm of the plan, and its host or the turn of its hosts; see `_arms`."""
_Part = tuple[str, str]
"""A machine, and a device on it that a volume uses."""


def in_duets(campaign: Campaign) -> Campaign:
    """Return a campaign whose arms of a block run at the same time, if its order is ``duets``.

    On one host each arm becomes a client, which starts with the others. Everything else runs by
    itself, in the planned order.

    Raises:
        InputError: there are no arms, or several clients have several arms each.
    """
    if campaign.order is not Order.DUETS:
        return campaign
    clients = {(run.host, run.client) for run in campaign.runs}
    arms = tuple(dict.fromkeys(run.arm for run in campaign.runs if run.arm))
    if len(clients) > 1 and (arms or len({host for host, _ in clients}) == 1):
        raise InputError(
            "duets need one client for each arm: several targets on one host, or several hosts",
            hint=_HINT,
        )
    if len(clients) == 1 and not arms:
        raise InputError(
            "duets need arms, and there is only one", hint="add a second --on, or hosts"
        )
    number = {run.volume.role: arms.index(run.arm) + 1 for run in campaign.runs if run.arm}
    steps: dict[int, int] = {}
    runs = []
    for place, run in enumerate(campaign.runs, start=1):
        own = run.step or place
        step = steps.setdefault(run.block, own) if run.block else own
        changed: dict[str, object] = {"step": step, "in_turn": True}
        if arms:
            changed["client"] = number.get(run.volume.role, 1)
        if run.block:
            changed |= {"start": Start.TOGETHER, "start_offset_s": 0.0}
        runs.append(run.model_copy(update=changed))
    return campaign.model_copy(update={"runs": tuple(sorted(runs, key=lambda run: run.step))})


def check_duets(
    campaign: Campaign,
    machines: Mapping[str, str],
    volumes: Mapping[str, Sequence[VolumeFacts]],
) -> None:
    """Refuse duets whose arms share a device, or a limit of their machine that is declared.

    Args:
        machines: host to the identity of its machine; empty if unknown.
        volumes: host to the facts of its volumes.

    Raises:
        RefusedError: two arms share something, or it is unknown whether they do.
    """
    if campaign.order is not Order.DUETS:
        return
    for (_, first), (_, second) in combinations(_arms(campaign).items(), 2):
        for one in first:
            for other in second:
                reason = _shared(one, other, machines, volumes)
                if reason:
                    raise RefusedError(
                        f"{_named(one)} and {_named(other)} cannot be measured at the same time: "
                        f"{reason}",
                        hint=_HINT,
                    )


def _arms(campaign: Campaign) -> dict[_Arm, list[Run]]:
    """Return the arms, each with one run for each volume; hosts of one turn are one arm."""
    turns = {host.name: host.turn for host in campaign.hosts}
    has_turns = len({*turns.values()}) > 1
    arms: dict[_Arm, dict[tuple[str, str], Run]] = {}
    for run in (run for run in campaign.runs if run.block):
        place = str(turns[run.host]) if has_turns else run.host
        arms.setdefault((run.arm, place), {}).setdefault((run.host, run.volume.target), run)
    return {arm: [*runs.values()] for arm, runs in arms.items()}


def _shared(
    one: Run,
    other: Run,
    machines: Mapping[str, str],
    volumes: Mapping[str, Sequence[VolumeFacts]],
) -> str:
    """Return what two runs share, or may share; empty for nothing that is known."""
    parts = []
    for run in (one, other):
        facts = {each.target: each for each in volumes[run.host]}[run.volume.target]
        parts.append({*_parts(facts, machines[run.host])})
        if not parts[-1]:
            return f"the disk under {run.volume.target} is unknown"
    if common := sorted(name for _, name in parts[0] & parts[1]):
        return f"both use {common[0]}"
    is_same = machines[one.host] == machines[other.host]
    if is_same and (machine := one.limits.machine or other.limits.machine):
        return f"they share the limits of their machine, {machine}"
    return ""


def _parts(facts: VolumeFacts, machine: str) -> Iterator[_Part]:
    """Yield what a volume uses; nothing where the disk that holds it is unknown."""
    if facts.in_memory:
        yield machine, "the memory of the machine"
    elif facts.device and (facts.backing or not facts.device.startswith("loop")):
        for name in (facts.device, *facts.backing):
            yield machine, name
            if controller := re.match(r"nvme\d+", name):
                yield machine, f"the controller {controller[0]}"


def _named(run: Run) -> str:
    return f"{run.host}:{run.volume.target}"
