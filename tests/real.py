"""A small campaign measured with fio, for tests of everything that is made from results."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.command_line import call

PROFILE = """\
name: small
defaults: {ioengine: psync, size: 4m, runtime: 2s, time_based: 1, direct: 0}
jobs:
  reads: {rw: randread, bs: 4k, rate_iops: 500}
  writes: {rw: randwrite, bs: 16k, rate_iops: 200}
"""

ROOT = Path(__file__).parents[1]


def measure(folder: Path, name: str, *settings: str) -> Path:
    """Return a campaign that was measured in a folder.

    Args:
        folder: where it and its scratch files go.
        name: of the campaign.
        settings: ``KEY=VALUE`` of the profile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / f"{name}.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    scratch = folder / f"{name}-scratch"
    scratch.mkdir()
    into = folder / name
    changes = [part for setting in settings for part in ("--set", setting)]
    done = call("run", profile, "--on", scratch, "--output", into, *changes)
    assert done.returncode == 0, done.stderr
    return into


def prometheus_program(name: str) -> str:
    """Return the path of a program of Prometheus; scripts/setup dev puts it in place."""
    program = shutil.which(name, path=f"{os.environ['PATH']}:{ROOT / '.tools'}")
    assert program is not None, f"{name} is missing: run scripts/setup dev"
    return program


def promtool(*arguments: str | Path) -> str:
    """Run promtool and return what it prints."""
    done = subprocess.run(
        [prometheus_program("promtool"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
