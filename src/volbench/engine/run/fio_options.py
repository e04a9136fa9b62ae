"""The option table that holds on a machine: its own fio's, or else the shipped one."""

from __future__ import annotations

from collections.abc import Sequence

from volbench.errors import FioError
from volbench.execute.protocol import Executor
from volbench.fio.jobs.option_table import installed_table, shipped_table
from volbench.model.profile.fio_option import OptionTable


def options_on(executor: Executor) -> OptionTable:
    """Return the options of the fio on a machine, or the shipped table where fio is missing."""
    fio = executor.which("fio")
    if fio is None:
        return shipped_table()

    def ask(arguments: Sequence[str]) -> str:
        done = executor.run([fio, *arguments])
        if done.exit_status:
            raise FioError(
                f"{fio} {' '.join(arguments)} failed: {done.stderr.strip() or done.stdout.strip()}",
                hint="check that this fio works: fio --version",
                context={"path": fio},
            )
        return done.stdout

    return installed_table(ask)
