"""What a campaign will take is told before it begins; at a terminal a long one is asked about."""

from pathlib import Path

import pytest

from tests.command_line import Volbench, at_a_terminal, settings

LONG = """
name: long
sample: 0
device_sample: 0
defaults: {ioengine: psync, size: 1m, bs: 4k, filename: f}
jobs:
  first: {rw: write, startdelay: 2h, runtime: 1s, time_based: 1}
"""


@pytest.fixture(name="long")
def _long(tmp_path: Path, scratch: Path) -> list[str]:
    """Return the command line of a campaign that waits for two hours."""
    profile = tmp_path / "long.yaml"
    profile.write_text(LONG)
    return ["run", str(profile), "--on", str(scratch), "--output", str(tmp_path / "out")]


def test_a_long_campaign_needs_confirmation(long: list[str], tmp_path: Path) -> None:
    """Anything but yes is a refusal, and nothing was made."""
    status, stderr = at_a_terminal(long, "n")
    assert status == 3, stderr
    assert "Estimated time: 2h" in stderr
    assert "will take a long time. Start it?" in stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "more"), [("y", ()), ("n", ("--yes",))])
def test_yes_starts_the_campaign(
    long: list[str], tmp_path: Path, typed: str, more: tuple[str, ...]
) -> None:
    """A y at the question, or --yes before it, goes on to the campaign."""
    short = settings("first.startdelay=", "first.time_based=", "first.runtime=2h")
    status, stderr = at_a_terminal([*long, *short, *more], typed)
    assert status == 0, stderr
    assert ("will take a long time" in stderr) is (typed == "y")
    assert (tmp_path / "out" / "campaign.json").exists()


def test_non_interactive_commands_are_never_prompted(long: list[str], volbench: Volbench) -> None:
    """Without a terminal the estimate is told, and the campaign begins."""
    slow = settings("first.runtime=2h", "first.time_based=", "first.startdelay=")
    done = volbench(*long, *slow)
    assert done.returncode == 0, done.stderr
    assert "Estimated time: up to about 2h" in done.stderr
    assert "will take a long time" not in done.stderr
