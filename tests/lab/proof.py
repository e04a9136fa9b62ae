"""A scenario is served, measured by a profile through the command line, and opened to judge."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import volbench
from volbench.analyse.warmup import Curve, curves
from volbench.lab.scenario import Scenario, load_scenario, read_scenario
from volbench.lab.server import serve
from volbench.lab.truth import Direction, Truth, truth

needs_nbdkit = pytest.mark.skipif(shutil.which("nbdkit") is None, reason="nbdkit is not installed")

SAMPLE_S = 0.5


@dataclass(frozen=True)
class Workload:
    """What is asked of the volume."""

    rw: str
    bs: str = "4k"
    iodepth: int = 8
    runtime_s: int = 15

    @property
    def block_bytes(self) -> int:
        """The block size as a number."""
        return int(self.bs[:-1]) << 10

    @property
    def direction(self) -> Direction:
        """The direction of a pattern that has one."""
        return "read" if "read" in self.rw else "write"

    @property
    def yaml(self) -> str:
        """The job of the profile."""
        return (
            f"{{rw: {self.rw}, bs: {self.bs}, iodepth: {self.iodepth}, runtime: {self.runtime_s}s}}"
        )


@dataclass(frozen=True)
class Proof:
    """What was measured, beside what is true."""

    campaign: volbench.CampaignData
    truth: Truth

    @property
    def verdict(self) -> pd.Series:
        """The verdict on the first Run."""
        return self.campaign.verdicts().iloc[0]

    @property
    def iops(self) -> float:
        """The rate of the first Run."""
        return float(self.campaign.summary().iloc[0]["iops"])

    @property
    def curve(self) -> Curve:
        """The climb of the volume."""
        (found,) = curves(self.campaign.summary(), self.campaign.series())
        return found

    def doubts(self, *severities: str) -> list[str]:
        """The rules that fired with one of these severities."""
        findings = self.campaign.findings()
        wanted = severities or ("warning", "invalid")
        return sorted(set(findings[findings["severity"].isin(wanted)]["rule"]))


def measure(scenario: str | Scenario, folder: Path, *workloads: Workload, more: str = "") -> Proof:
    """Run workloads one after another on a new volume.

    Args:
        scenario: a bundled one by its name, or any.
        folder: for everything.
        workloads: a job each.
        more: further lines of the profile.
    """
    volume = read_scenario(scenario) if isinstance(scenario, str) else scenario
    lines = [
        "name: proof",
        f"sample: {SAMPLE_S * 1000:.0f}ms",
        f"defaults: {{ioengine: nbd, size: {volume.size_bytes}, time_based: 1, refill_buffers: 1}}",
        *([more] if more else []),
        "jobs:",
        *(f"  job{number}: {one.yaml}" for number, one in enumerate(workloads, start=1)),
    ]
    profile = folder / "proof.yaml"
    profile.write_text("\n".join(lines) + "\n")
    with serve(volume, folder / "lab") as served:
        run(profile, served.uri, folder / "campaign")
    first = workloads[0]
    expected = truth(
        volume, direction=first.direction, block_bytes=first.block_bytes, iodepth=first.iodepth
    )
    return Proof(volbench.open_campaign(folder / "campaign"), expected)


def run(profile: Path | str, target: str, into: Path, *more: str) -> None:
    """Run a profile as a user would, and fail with its own words."""
    command = [sys.executable, "-m", "volbench", "run", str(profile)]
    command += ["--on", target, "--allow-destroy", target, "--into", str(into), *more]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def made(text: str) -> Scenario:
    """Return a scenario nobody tuned anything for."""
    return load_scenario(text, path="made.yaml")
