"""volbench config: where defaults come from."""

from __future__ import annotations

import click

from volbench.cli.configuration import (
    KEYS,
    LOCAL_FILE,
    Default,
    read_configuration,
    text_of,
    user_file,
)
from volbench.cli.lazy_group import VerbGroup
from volbench.cli.output import TableOutput, table_options
from volbench.run_profiles import DEFAULT_RESULTS


@click.group("config", cls=VerbGroup)
def command() -> None:
    """Show the defaults from volbench.toml and the user's config.toml.

    volbench.toml is read from the current folder, config.toml from ~/.config/volbench
    ($XDG_CONFIG_HOME). Options on the command line go before both.
    """


@command.command("show")
@table_options()
def show(*, shown: TableOutput) -> None:
    """Show every default with the file that it comes from."""
    from volbench.present.tables.table import IDENTITY, Column, Table

    found = {"results": Default(DEFAULT_RESULTS, None), **read_configuration()}
    rows = [
        {
            "key": key,
            "value": text_of(found[key].value) if key in found else None,
            "from": str(found[key].file or "volbench") if key in found else None,
            "meaning": meaning,
        }
        for key, meaning in KEYS.items()
    ]
    columns = [
        Column[dict[str, str | None]]("key", priority=IDENTITY),
        Column[dict[str, str | None]]("value", priority=IDENTITY, is_folded=True),
        Column[dict[str, str | None]]("from", priority=1, is_folded=True),
        Column[dict[str, str | None]]("meaning", priority=2, is_folded=True),
    ]
    shown.write(Table("config", columns, rows))
    for file in (LOCAL_FILE, user_file()):
        if not file.is_file():
            click.echo(f"not there: {file}", err=True)
