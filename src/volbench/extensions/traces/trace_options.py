"""Options of the verbs that record and import traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click

from volbench.cli.options import RecordedHost, Tracing, flag, option_group

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

    def check(self, hosts: Sequence[RecordedHost]) -> None:
        """Refuse what cannot be recorded."""
        from volbench.extensions.traces.recorder import check_recordable

        for host in hosts if self.is_recorded else ():
            check_recordable(host.executor, host.devices)

    @contextmanager
    def recorded(self, folder: Path, hosts: Sequence[RecordedHost]) -> Iterator[None]:
        """Record the devices while the block runs; each of several hosts into its own folder."""
        from volbench.extensions.traces.recorder import recorded
        from volbench.extensions.traces.trace_file import recording_folder

        def tell(sentence: str) -> None:
            click.echo(sentence, err=True)

        with ExitStack() as stack:
            for host in hosts if self.is_recorded else ():
                target = folder
                if len(hosts) > 1:
                    target = folder / recording_folder(host.name)
                    target.mkdir()
                stack.enter_context(
                    recorded(
                        target,
                        host.devices,
                        tell,
                        is_anonymised=self.is_anonymised,
                        executor=host.executor,
                    )
                )
            yield


# Adds the options to a verb, as the keyword `tracing`
TRACE = option_group(
    "tracing",
    RecordedTrace,
    flag(
        "--trace",
        "Also record each I/O in trace.parquet in the campaign folder, of several hosts in folders "
        "trace-HOST. Needs root.",
        "is_recorded",
    ),
    flag(
        "--anonymise",
        "Omit names of processes; with --trace, also shuffle the offsets in chunks (4,096 per "
        "device) and omit dates from the trace.",
        "is_anonymised",
    ),
    heading="Trace",
)
