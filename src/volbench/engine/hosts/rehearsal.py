"""Rehearsal of a run on a host: start, gate, sampler and files, with a job without I/O.

Any fault that would stop a run, such as a sudo that asks for a password or a folder owned by root,
stops the rehearsal. No volume is touched.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from volbench.engine.campaign.barrier import Barrier
from volbench.engine.campaign.start_gate import Gate
from volbench.engine.guard.run_guard import RESULT_BYTES, check_space
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.hosts.installed_fio import find_fio
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, execute_run
from volbench.engine.run.stop_request import StopRequest
from volbench.engine.sampling.clock_offset import Clock
from volbench.errors import FioError
from volbench.execute.waiting_work import finish
from volbench.model.campaign.planned_run import Run, RunState, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.store.layout import RunFolder

_DEADLINE_S = 60.0
_SAMPLE_S = 1.0
_OPTIONS = {"ioengine": "null", "rw": "read", "bs": "4096", "size": "1048576"}


def rehearse(host: ConnectedHost, *, clock: Clock) -> None:
    """Execute a run without I/O on a host as a campaign would, and remove its files."""
    found = find_fio(host.executor)
    ready = replace(host, fio=found.path, versions={Tool.FIO: found.version}, clock=clock)
    run = Run(
        id="rehearsal",
        profile="probe",
        job="rehearsal",
        volume=Volume(role="none", kind=VolumeKind.DIRECTORY, target="/nonexistent"),
        host=host.name,
        sections=(Section(name="rehearsal", options=_OPTIONS),),
        sample_s=0,
        device_sample_s=_SAMPLE_S,
    )
    with TemporaryDirectory(prefix="volbench-probe-") as here:
        name = f"rehearsal-{secrets.token_hex(4)}"
        directory = RunDirectory(host.executor, RunFolder(Path(here)), name=name)
        try:
            check_space(host.executor, directory.path, needed_bytes=RESULT_BYTES)
            _execute(ready, run, directory)
        finally:
            directory.remove()


def _execute(host: ConnectedHost, run: Run, directory: RunDirectory) -> None:
    gate = Gate(Barrier([run], quorum=1), run.id, host.clock, patience_s=_DEADLINE_S)
    attempt = Attempt(
        host,
        run,
        directory,
        deadline_s=_DEADLINE_S,
        listener=lambda _event: None,
        stop=StopRequest(),
        gate=gate,
    )
    outcome = finish(execute_run(attempt))
    if outcome.state is not RunState.FINISHED:
        raise FioError(
            f"a run without I/O fails on this host: {outcome.reason}",
            hint="log in as that user and start fio, with sudo if the inventory says so",
        )
