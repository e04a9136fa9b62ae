"""The estimated time of a campaign beside the time that it takes."""

import re
import time
from pathlib import Path

import pytest

from tests.command_line import Volbench
from volbench.units import parse_duration

PROFILE = """
name: timed
defaults: {ioengine: psync, direct: 1, bs: 4k, size: 64m, time_based: 1, runtime: 2s}
phases: {precondition: {fill: {rw: write, bs: 1m, runtime: null, time_based: null}}}
jobs:
  reads: {rw: randread, startdelay: 2s}
  writes: {rw: randwrite, ramp_time: 1s}
"""


@pytest.mark.alone
def test_the_estimate_is_the_time_of_a_real_run(tmp_path: Path, volbench: Volbench) -> None:
    """Layout, fill, pause, ramp and start-up are part of one number, within a factor of two."""
    profile, target = tmp_path / "timed.yaml", tmp_path / "volume"
    profile.write_text(PROFILE)
    target.mkdir()
    began_s = time.monotonic()
    done = volbench("run", profile, "--on", target, "--output", tmp_path / "out", "--yes")
    took_s = time.monotonic() - began_s
    assert done.returncode == 0, done.stderr
    (text,) = re.findall(r"Estimated time: ([^,.]*)", done.stderr)
    assert took_s / 2 <= parse_duration(text) <= took_s * 2
