"""Campaigns measured in virtual time: planned, run, read and judged as real ones are."""

from pathlib import Path

import volbench
from tests.command_line import call
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.proof import Proof, Workload, profile_text
from tests.extensions.lab.silent_export import silent_export
from volbench.extensions.lab.scenario import Scenario, read_scenario


def measure_virtually(scenario: str | Scenario, folder: Path, *workloads: Workload) -> Proof:
    """Run workloads one after another on a new volume, in virtual time."""
    volume = read_scenario(scenario) if isinstance(scenario, str) else scenario
    write_campaign(profile_text(volume, workloads), volume, folder / "campaign")
    return Proof(volbench.open_campaign(folder / "campaign"), volume, workloads)


def write_campaign(profile: str, scenario: Scenario, folder: Path) -> None:
    """Run one profile on one simulated volume, in virtual time."""
    path, uri = folder.with_suffix(".yaml"), silent_export()
    path.write_text(profile, encoding="utf-8")
    with virtual_fio(scenario):
        done = call("run", path, "--on", uri, "--allow-destroy", uri, "--output", folder)
    assert done.returncode == 0, done.stderr
