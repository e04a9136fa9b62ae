"""Settings of several profiles: each goes where what it names is."""

import pytest

from tests.plan.loading import load
from volbench.plan.profile.profile_edits import settings_by_profile

ROUNDS = """
name: in-rounds
rounds: {max: 25, track: [writes.iops]}
defaults: {size: 1m}
jobs: {writes: {rw: randwrite}, reads-512: {rw: randread, bs: 512}}
"""
PLAIN = "name: plain\ndefaults: {size: 1m}\njobs: {histogram: {rw: randwrite}}\n"


@pytest.mark.parametrize(
    ("setting", "places"),
    [
        ("size=64m", (0, 1)),
        ("rounds.max=6", (0,)),
        ("writes.bs=8k", (0,)),
        ("histogram.until=steady", (1,)),
        ("*-512=", (0,)),
        ("histogram=", (1,)),
        ("runtime=", (0, 1)),
        ("nothing.bs=8k", (0, 1)),
        ("no equals sign", (0, 1)),
    ],
)
def test_each_setting_reaches_the_profiles_that_have_its_key(
    setting: str, places: tuple[int, ...]
) -> None:
    """What no profile has stays with all of them, whose errors then tell the mistake."""
    found = settings_by_profile([load(ROUNDS), load(PLAIN)], [setting])
    assert tuple(place for place, own in enumerate(found) if own) == places


def test_the_order_of_settings_is_kept() -> None:
    """Later settings hold over earlier ones, as they were typed."""
    settings = ["size=2m", "writes.size=3m", "size=4m"]
    assert settings_by_profile([load(ROUNDS), load(PLAIN)], settings) == [
        settings,
        ["size=2m", "size=4m"],
    ]
