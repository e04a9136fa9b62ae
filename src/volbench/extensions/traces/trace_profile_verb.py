"""Verb profile from-trace."""

from __future__ import annotations

import re
from pathlib import Path

import click

from volbench.cli.options import examples, output_option
from volbench.cli.output import binary_output


@click.command(
    "from-trace",
    epilog=examples(
        "volbench profile from-trace night/trace.parquet --output night.yaml",
        "volbench profile from-trace trace.parquet",
    ),
)
@click.argument("trace", type=click.Path(exists=True, path_type=Path))
@output_option(
    default="-",
    show_default="standard output",
    metavar="FILE",
    help="File or folder for the profile.",
)
def from_trace(trace: Path, output: str) -> None:
    """Write a profile of a few jobs that approximates TRACE.

    Its jobs have the rates, mixes, block sizes and hot ranges of the phases of the load. Run it,
    and compare it with the recording: volbench fidelity DIR --trace TRACE.
    """
    from volbench.cli.profiles import say_note
    from volbench.extensions.traces.trace_file import find_trace
    from volbench.extensions.traces.trace_profile import profile_text

    path = find_trace(trace)
    stem = path.stem if path == trace else trace.resolve().name
    name = re.sub(r"[^a-z0-9-]+", "-", stem.lower()).strip("-") or "trace"
    with binary_output(output, default_name=f"{name}.yaml") as sink:
        sink.write(profile_text(path, f"{name}-load", note=say_note).encode())
