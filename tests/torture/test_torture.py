"""Short form of scripts/torture: a fresh seed each time, shown with the case that failed."""

import random
import secrets
from pathlib import Path

import pytest

from tests.torture.device_world import made_up
from tests.torture.guard_situations import answer
from tests.torture.kinds import KINDS, NEIGHBOUR_KINDS
from tests.torture.runner import Kind, chance_of, torture
from tests.torture.scripted_devices import ScriptedDevices

SECONDS = 40.0
"""For all kinds together."""


@pytest.mark.nightly
@pytest.mark.root
@pytest.mark.parametrize("kind", [*KINDS, *NEIGHBOUR_KINDS], ids=lambda kind: kind.name)
def test_random_cases_are_refused_or_accepted_correctly(kind: Kind) -> None:
    """Nothing is found in a short time."""
    seconds = SECONDS * kind.share / sum(other.share for other in KINDS)
    (tally,) = torture([kind], seed=secrets.token_hex(4), seconds=seconds)
    assert not tally.failures
    assert tally.checks


def test_a_guard_that_permits_everything_is_found() -> None:
    """The made-up machines hold devices in use: without the guard some case fails."""
    chance = chance_of("fixed", KINDS[0], 0)
    worlds = [made_up(chance) for _ in range(20)]
    devices = [(world, device) for world in worlds for device in world.devices]
    in_use = [device for world, device in devices if world.harm(device, wipe=True)]
    assert 0.2 < len(in_use) / len(devices) < 0.95


def test_free_devices_are_accepted() -> None:
    """Some devices of the made-up machines may be overwritten: the property is not empty."""
    chance = chance_of("fixed", KINDS[0], 1)
    accepted = 0
    for _ in range(10):
        world = made_up(chance)
        host = ScriptedDevices(world, chance)
        answers = [answer(host.executor, d.node, chance, wipe=True) for d in world.devices]
        accepted += answers.count("")
    assert accepted


def test_a_failure_names_its_case() -> None:
    """What failed is shown with the command that tries it again; the others are tried."""
    said: list[str] = []
    tried = []

    def fails_at_three(chance: random.Random, folder: Path) -> int:
        del chance
        tried.append(folder)
        assert len(tried) != 3
        return 1

    (tally,) = torture(
        [Kind("bad", fails_at_three, least=5)], seed="s", seconds=0, long=True, say=said.append
    )
    assert (tally.cases, tally.checks, list(tally.failures)) == (5, 4, [2])
    assert said[0].startswith("FAILED: scripts/torture --seed s --only bad --case 2\n")
