"""A stored plan in; the same plan out, once it is safe to go on with on this machine.

A campaign folder may come from elsewhere. Its plan names devices and files by path, and says which
may be overwritten: on another machine those are other devices and files.
"""

from __future__ import annotations

from volbench.engine.hosts import machine_of
from volbench.errors import ArchiveError, InputError, RefusedError
from volbench.execute.protocol import Executor
from volbench.fio.options import shipped_table
from volbench.model.canonical import check_option
from volbench.model.ddoption import check_dd_option
from volbench.model.option import OptionTable
from volbench.model.profile import Tool
from volbench.model.run import Campaign, Run
from volbench.store.archive import Archive


def check_resumable(
    executor: Executor, archive: Archive, *, table: OptionTable, allow_exec: bool
) -> Campaign:
    """Return the plan of a campaign that this machine may go on with.

    Args:
        executor: the machine.
        archive: what the campaign folder says.
        table: options of the fio that is here.
        allow_exec: accept options that run programs or leave the Run's folder.

    Raises:
        RefusedError: it was planned on another machine.
        ArchiveError: an option in it is one that a profile may not have.
    """
    planned = {host.machine for host in archive.provenance.hosts}
    if planned != {machine_of(executor)}:
        raise RefusedError(
            "this campaign was planned on another machine, where its devices and files are others",
            hint="resume it there, or run the profile here: volbench run",
        )
    for run in archive.campaign.runs:
        _check_options(run, table, allow_exec=allow_exec)
    return archive.campaign


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
