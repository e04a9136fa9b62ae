"""Campaigns measured in virtual time: planned, rendered, read and judged as real ones are."""

import json
from pathlib import Path

import volbench
from tests.extensions.lab.proof import SAMPLE_S, Proof, Workload, profile_text
from tests.extensions.lab.virtual_fio_output import VERSION
from tests.extensions.lab.virtual_run import BEGIN_UTC_S, VirtualVolume
from volbench.engine.run.tool_command import command_of
from volbench.extensions.lab.scenario import Scenario, read_scenario
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.planned_run import Run, Volume, VolumeKind
from volbench.model.results.provenance import HostFacts, VolumeFacts
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.profile.load_profile import load_profile
from volbench.store.archive import Archive, Provenance, create_campaign, fresh_run_folder
from volbench.store.journal import utc_at
from volbench.store.layout import RunFolder

TARGET = "nbd+unix:///?socket=/virtual/volume.sock"


def measure_virtually(
    scenario: str | Scenario, folder: Path, *workloads: Workload, more: str = ""
) -> Proof:
    """Run workloads one after another on a new volume, in virtual time."""
    volume = read_scenario(scenario) if isinstance(scenario, str) else scenario
    text = profile_text(volume, workloads, more=more)
    write_campaign(text, volume, folder / "campaign")
    return Proof(volbench.open_campaign(folder / "campaign"), volume, workloads)


def write_campaign(profile: str, scenario: Scenario, folder: Path) -> None:
    """Write the folder of a campaign with one profile on one simulated volume."""
    loaded = load_profile(profile, path="proof.yaml", table=shipped_table())
    target = Volume(role="data", kind=VolumeKind.NBD, target=TARGET)
    terms = Terms(name=folder.name, created_utc=utc_at(BEGIN_UTC_S), seed=1)
    campaign = expand([loaded], {"data": target}, terms)
    facts = VolumeFacts(role="data", target=TARGET, kind=VolumeKind.NBD, path=TARGET)
    host = HostFacts(host="local", machine="virtual", cpus=2, fio_version=VERSION)
    provenance = Provenance(
        volbench_version=volbench.__version__,
        python_version="3.11",
        hosts=(host,),
        volumes=(facts,),
    )
    layout = create_campaign(
        folder, Archive(campaign=campaign, provenance=provenance, profiles={"proof": profile})
    )
    volume = VirtualVolume(scenario)
    lines = []
    for run in campaign.runs:
        _write_run(run, volume, fresh_run_folder(layout, run.id), facts)
        lines.append(
            {"utc": utc_at(BEGIN_UTC_S), "kind": "run", "run": run.id, "state": "finished"}
        )
    layout.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _write_run(run: Run, volume: VirtualVolume, folder: RunFolder, facts: VolumeFacts) -> None:
    (section,) = run.sections
    done = volume.run(
        run.options,
        job_options=section.options,
        name=section.name,
        sample_s=run.sample_s or SAMPLE_S,
        device_sample_s=run.device_sample_s,
        seed=run.seed % 1000,
    )
    command = command_of(run, fio="fio")
    facts_text = facts.model_dump_json(indent=1) + "\n"
    for name, text in {**command.files, **done.files, "facts.json": facts_text}.items():
        (folder.path / name).write_text(text, encoding="utf-8")
    status = {
        "format": 1,
        "state": "finished",
        "reason": "",
        "exit_status": 0,
        "ending": "itself",
        "started_utc": utc_at(done.begin_utc_s),
        "ended_utc": utc_at(done.end_utc_s),
        "elapsed_s": round(done.elapsed_s, 3),
        "argv": command.shown,
        "tool_version": VERSION,
    }
    folder.status.write_text(json.dumps(status, indent=1) + "\n", encoding="utf-8")
