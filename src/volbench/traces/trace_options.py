"""Options of the verbs that record and import traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click

from volbench.cli.options import Tracing, flag, option_group
from volbench.errors import InputError

# Formats of other tools that are imported: all of `trace_file.Source` but what the kernel writes
Format = Literal["blkparse", "iolog2", "iolog3", "alibaba", "tencent", "thesios"]
FORMATS: tuple[Format, ...] = get_args(Format)
ANONYMISE = flag(
    "--anonymise",
    "Shuffle the offsets in chunks (4,096 per device), and omit names and dates from the trace.",
    "is_anonymised",
)


@dataclass(frozen=True)
class RecordedTrace(Tracing):
    """Whether each I/O is recorded, and how."""

    is_recorded: bool = False
    is_anonymised: bool = False

    def check(self, devices: Sequence[Sequence[str]], *, is_remote: bool) -> None:
        """Refuse what cannot be recorded."""
        from volbench.traces.recorder import disks_of, find_tracefs

        if not self.is_recorded:
            if self.is_anonymised:
                raise InputError("--anonymise needs --trace", hint="add --trace")
            return
        if is_remote:
            raise InputError(
                "--trace records the disks of this machine only",
                hint="run volbench watch --trace on each host",
            )
        find_tracefs()
        disks_of(devices)

    @contextmanager
    def recorded(self, folder: Path, devices: Sequence[Sequence[str]]) -> Iterator[None]:
        """Record the devices while the block runs."""
        from volbench.traces.recorder import recorded

        if not self.is_recorded:
            yield
            return

        def tell(sentence: str) -> None:
            click.echo(sentence, err=True)

        with recorded(folder, devices, tell, is_anonymised=self.is_anonymised):
            yield


# Adds the options to a verb, as the keyword `tracing`
TRACE = option_group(
    "tracing",
    RecordedTrace,
    flag(
        "--trace",
        "Also record each I/O in trace.parquet in the campaign folder. Needs root.",
        "is_recorded",
    ),
    ANONYMISE,
    heading="Trace",
)
