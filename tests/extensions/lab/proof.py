"""A scenario is served, measured by a profile through the command line, and opened to judge."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

import volbench
from volbench.analyse.bottleneck.campaign_context import Context, verdict_rows
from volbench.analyse.frames.run_view import RunView
from volbench.analyse.time.warmup_curve import Curve, curves
from volbench.api.one_campaign import campaign_data
from volbench.extensions.lab.expected_results import Direction, Truth, truth
from volbench.extensions.lab.scenario import Scenario, load_scenario, read_scenario
from volbench.extensions.lab.server import serve
from volbench.model.profile.profile_settings import Limits

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
    """What was measured, beside what is true. Without a workload, the first one is meant."""

    campaign: volbench.Dataset
    volume: Scenario
    workloads: tuple[Workload, ...]

    def truth(self, workload: Workload | None = None) -> Truth:
        """Return what a client must find."""
        requested = workload or self.workloads[0]
        return truth(
            self.volume,
            direction=requested.direction,
            block_bytes=requested.block_bytes,
            iodepth=requested.iodepth,
        )

    def verdict(self, workload: Workload | None = None) -> Mapping[str, Any]:
        """Return the verdict that analysts find in the frame."""
        return self._row(self.campaign.frame("verdicts"), workload)

    def verdict_given(self, limits: Limits, workload: Workload | None = None) -> Mapping[str, Any]:
        """Return the verdict on the same numbers when limits are declared."""
        (row,) = verdict_rows(Context((self.view(workload, limits=limits),)))
        return row

    def iops(self, workload: Workload | None = None) -> float:
        """Return the rate over the whole run."""
        return float(self._row(self.campaign.summary(), workload)["iops"])

    def view(self, workload: Workload | None = None, *, limits: Limits | None = None) -> RunView:
        """Return all that is known of a run, as if limits had been declared."""
        name = self._job(workload)
        (view,) = (
            entry
            for entry in campaign_data(self.campaign.path).context().views
            if entry.run.job == name
        )
        run = view.run.model_copy(update={} if limits is None else {"limits": limits})
        return replace(view, run=run)

    def _row(self, frame: pd.DataFrame, workload: Workload | None) -> Mapping[str, Any]:
        (row,) = frame[frame["job"] == self._job(workload)].to_dict("records")
        return {str(name): value for name, value in row.items()}

    def _job(self, workload: Workload | None) -> str:
        return f"job{self.workloads.index(workload or self.workloads[0]) + 1}"

    @property
    def curve(self) -> Curve:
        """The climb of the volume."""
        (found,) = curves(self.campaign.summary(), self.campaign.series())
        return found

    def findings(self, *severities: str) -> list[str]:
        """The rules that fired with one of these severities."""
        findings = self.campaign.findings.frame
        wanted = severities or ("warning", "invalid")
        return sorted(set(findings[findings["severity"].isin(wanted)]["rule"]))


def measure(scenario: str | Scenario, folder: Path, *workloads: Workload, more: str = "") -> Proof:
    """Run workloads one after another on a new volume."""
    volume = read_scenario(scenario) if isinstance(scenario, str) else scenario
    profile = folder / "proof.yaml"
    profile.write_text(profile_text(volume, workloads, more=more))
    with serve(volume, folder / "lab") as served:
        run(profile, served.uri, folder / "campaign")
    return Proof(volbench.open_campaign(folder / "campaign"), volume, workloads)


def profile_text(volume: Scenario, workloads: Sequence[Workload], *, more: str = "") -> str:
    """Return the profile that measures workloads on a volume."""
    lines = [
        "name: proof",
        f"sample: {SAMPLE_S * 1000:.0f}ms",
        f"defaults: {{ioengine: nbd, size: {volume.size_bytes}, time_based: 1, refill_buffers: 1}}",
        *([more] if more else []),
        "jobs:",
        *(f"  job{number}: {workload.yaml}" for number, workload in enumerate(workloads, start=1)),
    ]
    return "\n".join(lines) + "\n"


def run(profile: Path | str, target: str, into: Path, *more: str) -> None:
    """Run a profile as a user would, and fail with its own words."""
    command = [sys.executable, "-m", "volbench", "run", str(profile)]
    command += ["--on", target, "--allow-destroy", target, "--output", str(into), *more]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def made(text: str) -> Scenario:
    """Return a scenario nobody tuned anything for."""
    return load_scenario(text, path="made.yaml")
