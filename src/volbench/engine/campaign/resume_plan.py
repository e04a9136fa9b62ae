"""A stored plan in; the same plan out, once it is safe to go on with on this machine.

A campaign folder may come from elsewhere. Its plan names devices and files by path, and says which
may be overwritten: on another machine those are other devices and files.
"""

from __future__ import annotations

from collections.abc import Sequence

from volbench.engine.campaign.prepare import machine_at
from volbench.engine.hosts.connected_host import ConnectedHost, of_each
from volbench.engine.hosts.host_facts import machine_of
from volbench.engine.hosts.machine import Machine
from volbench.engine.hosts.volume_probe import require_fio
from volbench.engine.run.fio_options import options_on
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.canonical import check_option
from volbench.model.profile.dd_option import check_dd_option
from volbench.model.profile.fio_option import OptionTable
from volbench.model.profile.profile_model import Tool
from volbench.store.archive import Archive


def require_own(campaign: Campaign) -> None:
    """Refuse a campaign that was imported.

    Raises:
        RefusedError: its Runs were measured elsewhere.
    """
    if campaign.is_imported:
        raise RefusedError(
            f"the Runs of {campaign.name} were imported, so there is nothing to go on with",
            hint="to measure anew: volbench run PROFILE",
        )


def resume_on(
    stations: Sequence[ConnectedHost], archive: Archive, *, allow_exec: bool
) -> tuple[Machine, ...]:
    """Return the machines on which a campaign may go on.

    Args:
        stations: its hosts, connected; this machine where it has none.
        archive: what the campaign folder says.
        allow_exec: accept options that run programs or leave the Run's folder.

    Raises:
        RefusedError: a host is not the machine that it was planned on.
        ArchiveError: an option in the plan is one that a profile may not have.
        FioError: fio is missing now.
        TransportError: a host does not answer.
    """
    plan = archive.campaign
    planned = {host.host: host.machine for host in archive.provenance.hosts}
    needs_fio = bool(plan.cold_probe_roles) or any(run.tool is Tool.FIO for run in plan.runs)

    def ready(station: ConnectedHost) -> Machine:
        executor = station.executor
        if planned.get(station.host.name) != machine_of(executor):
            raise _moved(station)
        table = options_on(executor)
        for run in plan.runs:
            if run.host == station.host.name:
                _check_options(run, table, allow_exec=allow_exec)
        return machine_at(station, fio=require_fio(executor) if needs_fio else "")

    return tuple(of_each(stations, ready))


def _moved(station: ConnectedHost) -> RefusedError:
    if station.host.name == LOCAL:
        return RefusedError(
            "this campaign was planned on another machine, where its devices and files are others",
            hint="resume it there, or run the profile here: volbench run",
        )
    return RefusedError(
        f"{station.host.name} is not the machine on which this campaign was planned",
        hint="its devices and files are others; plan a new campaign: volbench run",
        context={"host": station.host.name},
    )


def _check_options(run: Run, table: OptionTable, *, allow_exec: bool) -> None:
    for section in run.sections:
        for name, value in run.effective(section).items():
            try:
                if run.tool is Tool.DD:
                    check_dd_option(name, value)
                else:
                    known = table if table.find(name) else shipped_table()
                    check_option(known, name, value, allow_exec=allow_exec)
            except InputError as error:
                raise ArchiveError(
                    f"the plan of Run {run.id} can't be used: {error.message}",
                    hint=error.hint,
                    context={"run": run.id},
                ) from error
