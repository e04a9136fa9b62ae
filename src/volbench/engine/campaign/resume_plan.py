"""Checks before a stored plan is resumed on this machine and its hosts.

A campaign folder may come from elsewhere. Its plan names devices and files by path, and says which
may be overwritten: on another machine those are other devices and files.
"""

from __future__ import annotations

from collections.abc import Sequence

from volbench.engine.campaign.prepare import ready_host
from volbench.engine.hosts.connected_host import ConnectedHost, on_every_host
from volbench.engine.hosts.host_facts import machine_of
from volbench.engine.hosts.installed_fio import options_on
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.canonical import check_dd_option
from volbench.model.profile.fio_option import OptionTable
from volbench.model.profile.option_policy import check_option
from volbench.model.profile.profile_model import Tool
from volbench.store.archive import Archive


def require_own(campaign: Campaign) -> None:
    """Refuse a campaign that was imported.

    Raises:
        RefusedError: its runs were measured elsewhere.
    """
    if campaign.is_imported:
        raise RefusedError(
            f"the runs of {campaign.name} were imported, so there is nothing to resume",
            hint="to measure again: volbench run PROFILE",
        )


def resume_on(
    hosts: Sequence[ConnectedHost], archive: Archive, *, allow_exec: bool
) -> tuple[ConnectedHost, ...]:
    """Return the hosts, ready to resume a campaign.

    Args:
        hosts: of the campaign, connected; this machine where it has none.
        archive: what the campaign folder says.
        allow_exec: accept options that run programs or leave the run's folder.

    Raises:
        RefusedError: a host is not the machine that it was planned on.
        ArchiveError: an option in the plan is one that a profile may not have.
        FioError: fio is missing now.
        TransportError: a host does not answer.
    """
    plan = archive.campaign
    planned = {facts.host: facts.machine for facts in archive.provenance.hosts}
    tools = {run.tool for run in plan.runs}
    if plan.cold_probe_roles:
        tools.add(Tool.FIO)

    def ready(host: ConnectedHost) -> ConnectedHost:
        if planned.get(host.name) != machine_of(host.executor):
            raise _moved(host)
        table = options_on(host.executor)
        for run in plan.runs:
            if run.host == host.name:
                _check_options(run, table, allow_exec=allow_exec)
        return ready_host(host, tools)

    return tuple(on_every_host(hosts, ready))


def _moved(host: ConnectedHost) -> RefusedError:
    if host.name == LOCAL:
        return RefusedError(
            "this campaign was planned on another machine, with other devices and files",
            hint="resume it there, or run the profile here: volbench run",
        )
    return RefusedError(
        f"{host.name} is not the machine on which this campaign was planned",
        hint="its devices and files are others; plan a new campaign: volbench run",
        context={"host": host.name},
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
                    f"the plan of run {run.id} can't be used: {error.message}",
                    hint=error.hint,
                    context={"run": run.id},
                ) from error
