"""Verb measure: a workload on volumes, with a conclusion."""

from __future__ import annotations

import re
from dataclasses import replace

import click
from click.core import ParameterSource

from volbench.api.measured_workloads import (
    MEASURE,
    Workloads,
    measured_profile,
    roles_of,
    volumes_on,
)
from volbench.cli.check import refuse_unmet
from volbench.cli.configuration import say_what_is_configured
from volbench.cli.fio_verb import FioVerb
from volbench.cli.hosts import HostSelection, on_named_hosts
from volbench.cli.options import (
    EXPECT,
    KEEP_FILES,
    SETTINGS,
    Quantity,
    examples,
    names_option,
    on_option,
    option_group,
)
from volbench.cli.output import TableOutput, default_campaign_folder, table_options, typed_command
from volbench.cli.results import reported_errors, say_closing
from volbench.cli.start import StartOptions, carry_out, start_options
from volbench.errors import InputError
from volbench.model.profile.secret_values import mask_text
from volbench.present.formatting import printable
from volbench.units import parse_duration, parse_size


def _parse_runtime(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < 1:
        raise InputError(f"{text} is shorter than a second", hint="write it like --runtime 10s")
    return seconds


def parse_scratch_size(text: str) -> str:
    """Return a size as it was written; fio's option takes a percentage of a device, too."""
    if text and not re.fullmatch(r"[1-9]\d?%|100%", text) and parse_size(text) < 1:
        raise InputError(f"{text} is not a size to measure", hint="write it like 1g")
    return text


_WORKLOADS = option_group(
    "workloads",
    Workloads,
    names_option(
        "--rw", "patterns", metavar="PATTERN,...", text="Access patterns.  [default: randread]"
    ),
    names_option("--bs", "block_sizes", metavar="SIZE,...", text="Block sizes.  [default: 4k]"),
    names_option(
        "--iodepth", "iodepths", metavar="N,...", text="I/Os in flight for each job.  [default: 32]"
    ),
    click.option(
        "--numjobs",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        metavar="N",
        help="Jobs in parallel.",
    ),
    click.option(
        "--size",
        default="",
        type=Quantity("SIZE", parse_scratch_size),
        help="Size of the scratch file, or of the part of a device.  [default: 1g, or the whole "
        "device]",
    ),
    click.option(
        "--runtime",
        "runtime_s",
        type=Quantity("TIME", _parse_runtime),
        default="5s",
        show_default=True,
        help="Duration of each run. Runs of 10s or more are also checked for steady state.",
    ),
    click.option(
        "--ioengine", default="libaio", show_default=True, metavar="NAME", help="I/O engine of fio."
    ),
    click.option(
        "--repeat",
        type=click.IntRange(1, 1000),
        default=3,
        show_default=True,
        metavar="N",
        help="Runs of each combination; 3 or more give confidence intervals.",
    ),
    click.option(
        "--within",
        multiple=True,
        metavar="METRIC<BOUND",
        help="Find the highest rate that keeps a bound on a latency, such as 'p99 < 5ms', in at "
        "most 12 runs; repeatable.",
    ),
)


@click.command(
    "measure",
    cls=FioVerb,
    epilog=examples(
        "volbench measure --on /mnt/data",
        "volbench measure --on /mnt/data --rw randread,randwrite --iodepth 1,32",
        "volbench measure --on /mnt/a --on /mnt/b --repeat 5",
        "volbench measure --on root@vm1:/data --on root@vm2:/data",
        "volbench measure --on /dev/sdb --rw read --bs 1m --runtime 1m",
    ),
)
@on_option(
    "Directory, device, file or NBD URI, of another host as for scp; several are compared with the "
    "first.",
    is_required=True,
)
@_WORKLOADS
@EXPECT
@start_options("measure", execution=(KEEP_FILES,))
@SETTINGS
@on_named_hosts
@table_options(has_output=False, has_events=True)
def measure(
    targets: tuple[str, ...],
    expectations: tuple[str, ...],
    *,
    workloads: Workloads,
    start: StartOptions,
    settings: tuple[str, ...],
    where: HostSelection,
    table_output: TableOutput,
) -> None:
    """Measure a workload on volumes, without a profile: a conclusion and a chart.

    With several targets, their runs alternate in random order, and each is compared with the first.
    In a directory, a scratch file is written once before it is read. The defaults take about 20 s.
    Other options of fio, such as --direct 0, hold in each run. A command: volbench run -- fio.
    """
    source = click.get_current_context().get_parameter_source("repeat")
    if workloads.within and source is ParameterSource.COMMANDLINE:
        message = "--within repeats the rate that it finds, and the one above it"
        raise InputError(message, hint="leave out --repeat")
    where, own_targets = replace(where, takes_turns=True).on(targets)
    roles_of(own_targets)  # refuses a role before anything is said
    click.echo(f"Checking {printable(mask_text(', '.join(targets)))}", err=True)
    from volbench.api.expectations import with_expected
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.model.frames.expectation import parse_expectation
    from volbench.plan.expansion.expand import Terms

    say_what_is_configured()
    with where.connected() as hosts:
        roles, directories = volumes_on(hosts, own_targets)
        profile = measured_profile(roles, workloads, directories, settings=settings)
        request = CampaignRequest(
            profiles=with_expected((profile,), [*map(parse_expectation, expectations)]),
            targets=roles if own_targets else {},
            into=start.output or default_campaign_folder(MEASURE),
            terms=Terms(consent=start.consent, command=typed_command(roles.values(), start.output)),
        )
        ended = carry_out(
            hosts, request, start=start, table_output=table_output, host_keys=where.host_keys
        )
    if ended is not None:
        say_closing(ended.layout, table_output, expected=ended.verdicts)
        with reported_errors(table_output):
            refuse_unmet(ended.verdicts, [ended.layout.root])
