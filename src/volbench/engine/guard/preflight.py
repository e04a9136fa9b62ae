"""Checks before anything is started: what would fail is said while nothing is lost."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence

from volbench.engine.guard.run_guard import check_run, check_space
from volbench.engine.hosts.machine import Machine
from volbench.engine.hosts.volume_probe import probe_volume
from volbench.errors import FioError, InputError
from volbench.execute.protocol import Executor
from volbench.fio.jobs.output_files import lays_out, planned_files, writes
from volbench.fio.jobs.render_job import render
from volbench.model.campaign.host import HostKind
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.campaign.target import VolumeKind
from volbench.model.profile.profile_model import Tool
from volbench.model.results.provenance import HostFacts
from volbench.plan.expansion.estimate import layout_bytes
from volbench.store.layout import JOB_FILE

_SERIAL = "serial:"
_CPU_LIST = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")


def check_campaign(
    machine: Machine, campaign: Campaign, *, host: HostFacts, campaign_dir: str
) -> None:
    """Check every Run of a campaign that a machine will do before the first one.

    Args:
        machine: where.
        campaign: the plan.
        host: what the machine is.
        campaign_dir: absolute path of the campaign folder.

    Raises:
        InputError: a job can't run here, with the fix.
        FioError: fio rejects a job, in its own words.
        RefusedError: a Run would destroy data without leave, or a volume is not fit.
    """
    made: set[str] = set()
    executor = machine.executor
    runs = _different(run for run in campaign.runs if run.host == machine.host)
    _check_blocks(executor, runs)
    for run in runs:
        check_cpus(run, cpus=host.cpus)
        guard_run(
            executor, run, campaign=campaign, campaign_dir=campaign_dir, ours=made.__contains__
        )
        made.update(path for path in planned_files(run) if executor.stat(path) is None)
    if machine.fio:
        check_job_files(machine, runs, name=campaign.key)


def _different(runs: Iterable[Run]) -> list[Run]:
    """Return one of all Runs that only their repeat and seed tell apart: rounds have thousands."""
    same = {"id": "", "repeat": 1, "seed": 0, "step": 0}
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(run.model_copy(update=same).model_dump_json(), run)
    return list(found.values())


def _check_blocks(executor: Executor, runs: Sequence[Run]) -> None:
    """Check direct I/O in blocks below 4 KiB against the least block of the device.

    Raises:
        InputError: the device can't do it, with the way out.
    """
    known: dict[str, int] = {}
    for run in runs:
        wanted = min(map(_direct_block, map(run.effective, run.sections)))
        if wanted >= _USUAL_BLOCK:
            continue
        if run.volume.target not in known:
            facts = probe_volume(executor, run.volume)
            known[run.volume.target] = facts.logical_block_bytes or 0
        if known[run.volume.target] > wanted:
            raise InputError(
                f"job {run.job} asks for direct I/O of {wanted} bytes, but {run.volume.target} "
                f"has blocks of {known[run.volume.target]}",
                hint=f"leave the job out with --set '{run.job}=', or all such jobs with a pattern "
                "such as --set '*-512='",
                context={"job": run.job, "path": run.volume.target},
            )


_USUAL_BLOCK = 4096


def _direct_block(options: Mapping[str, str]) -> int:
    """Return the least block of direct I/O of a section; fio's usual one for other I/O."""
    if options.get("direct", "0") != "1":
        return _USUAL_BLOCK
    sizes = re.split(r"[,-]", options.get("bs", str(_USUAL_BLOCK)))
    return min((int(size) for size in sizes if size.isdecimal()), default=_USUAL_BLOCK)


def guard_run(
    executor: Executor,
    run: Run,
    *,
    campaign: Campaign,
    campaign_dir: str,
    ours: Callable[[str], bool],
) -> None:
    """Pass one Run through the guard and the check for free space.

    Raises:
        RefusedError: with the reason and the way out.
    """
    files = planned_files(run)
    check_run(
        executor,
        run,
        writes=writes(run) or lays_out(run),
        files=files,
        allow_destroy=allowed_for(run, campaign),
        campaign_dir=campaign_dir,
        ours=ours,
    )
    missing = [path for path in files if executor.stat(path) is None]
    if missing and run.volume.kind in {VolumeKind.DIRECTORY, VolumeKind.FILE}:
        share = len(missing) / len(files)
        check_space(executor, missing[0], needed_bytes=round(layout_bytes(run) * share))


def allowed_for(run: Run, campaign: Campaign) -> tuple[str, ...]:
    """Return what a Run may overwrite on its host, as paths and uris.

    On another machine ``/dev/sdb`` is another disk. There the command line's leave counts only with
    the host's name before it (``vm01:/dev/sdb``), and the inventory's names devices by serial
    number or by a path under /dev/disk/by-id.
    """
    hosts = {host.name: host for host in campaign.hosts}
    host = hosts.get(run.host)
    if host is None or host.kind is HostKind.LOCAL:
        given = campaign.allow_destroy
    else:
        named = f"{run.host}:"
        given = tuple(
            entry.removeprefix(named) for entry in campaign.allow_destroy if entry.startswith(named)
        )
    own = host.allow_destroy if host is not None else ()
    pin = run.volume.pin
    by_serial = pin is not None and bool(pin.serial) and f"{_SERIAL}{pin.serial}" in own
    return (
        *given,
        *(entry for entry in own if not entry.startswith(_SERIAL)),
        *((run.volume.target,) if by_serial else ()),
    )


def check_cpus(run: Run, *, cpus: int) -> None:
    """Check ``cpus_allowed``, which fio counts from 0, against the CPUs there are.

    Raises:
        InputError: a CPU that this machine does not have is asked for, with the fix.
    """
    for section in run.sections:
        text = run.effective(section).get("cpus_allowed", "")
        if not _CPU_LIST.fullmatch(text):
            raise InputError(
                f"job {run.job}: cpus_allowed={text} is no list of CPUs",
                hint="write it like 0, 0-3 or 0,2",
                context={"job": run.job},
            )
        asked = [int(number) for number in re.findall(r"\d+", text)]
        if asked and max(asked) >= cpus:
            raise InputError(
                f"job {run.job} asks for CPU {max(asked)} (cpus_allowed={text}), but this machine "
                f"has {cpus}, which fio counts from 0 to {cpus - 1}",
                hint="choose one that exists with --set cpus_allowed=0, "
                "or let fio use all with --set cpus_allowed=",
                context={"job": run.job, "cpus": cpus},
            )


def check_job_files(machine: Machine, runs: Sequence[Run], *, name: str) -> None:
    """Let the installed fio parse every job file without running it.

    Args:
        machine: where.
        runs: what it will do.
        name: of the campaign's own folder there.

    Raises:
        FioError: it rejects one; its own words are quoted.
    """
    executor = machine.executor
    with tempfile.TemporaryDirectory(prefix="volbench-") as folder:
        place = executor.make_work_folder(folder, name=f"{name}/check")
        path = f"{place}/{JOB_FILE}"
        seen = set()
        for run in runs:
            if run.tool is not Tool.FIO or (text := render(run)) in seen:
                continue
            seen.add(text)
            executor.write_text(path, text)
            done = executor.run([machine.fio, "--parse-only", path])
            if done.exit_status:
                words = (done.stderr.strip() or done.stdout.strip()).replace(path, "job file")
                raise FioError(
                    f"fio rejects job {run.job}: {words}",
                    hint=f"see what it would get: volbench profile render {run.profile} -o DIR",
                    context={"job": run.job},
                )
        executor.remove_work_folder(place)
