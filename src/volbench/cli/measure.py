"""Verb measure: a workload on volumes, with a conclusion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from volbench.api.run_profiles import load_texts
from volbench.cli.check import refuse_unmet
from volbench.cli.configuration import say_what_is_configured
from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import (
    EXPECT,
    KEEP_FILES,
    SETTINGS,
    Decorator,
    Quantity,
    examples,
    names_option,
    option_group,
)
from volbench.cli.output import (
    TableOutput,
    default_campaign_folder,
    recorded_command,
    report_folder,
    table_options,
)
from volbench.cli.results import reported_errors
from volbench.cli.start import StartOptions, carry_out, start_options
from volbench.errors import InputError, ProfileError, quoted
from volbench.model.profile.secret_values import mask_text
from volbench.present.formatting import printable
from volbench.units import parse_duration, parse_size

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.model.profile.profile_model import Profile


# Writes every block of the scratch file once, so that no read finds one never written
_FILL = {"rw": "write", "iodepth": 8, "runtime": None, "time_based": None}
_FILL_BLOCK = "1m"  # or the whole of a smaller file


# Where the loader found a problem, in the profile that stands for the options, and its key
_PLACE = re.compile(r"^<options>:\d+:\d+: (?:jobs\.[^.\n]+\.|defaults\.|)(\w+)", re.MULTILINE)
# Parameters of the options that a bundled profile chooses instead
_CHOSEN = frozenset(
    {"patterns", "block_sizes", "iodepths", "numjobs", "size", "runtime_s", "ioengine", "repeat"}
)
# Bundled profiles of what an application does with its disk, for --for
APPLICATIONS = ("elasticsearch", "etcd", "kafka", "postgresql", "prometheus", "vm-root-disk")
_LETTERS = "abcdefghijkl"


@dataclass(frozen=True)
class Workloads:
    """Workloads to measure: every combination of pattern, block size and queue depth."""

    patterns: tuple[str, ...]  # values of fio's `rw`
    block_sizes: tuple[str, ...]  # values of `bs`
    iodepths: tuple[str, ...]  # values of `iodepth`
    numjobs: int  # jobs in parallel
    size: str  # of the scratch file; empty for 1 GiB, or the whole of a device
    runtime_s: float  # of each run
    ioengine: str  # I/O engine of fio
    repeat: int  # runs of each combination


def _parse_runtime(text: str) -> float:
    """Return seconds of a runtime."""
    seconds = parse_duration(text)
    if seconds < 1:
        raise InputError(f"{text} is shorter than a second", hint="write it like --runtime 10s")
    return seconds


def parse_scratch_size(text: str) -> str:
    """Return a size as it was written; fio's option takes a percentage of a device, too."""
    if text and not re.fullmatch(r"[1-9]\d?%|100%", text) and parse_size(text) < 1:
        raise InputError(f"{text} is not a size to measure", hint="write it like 1g")
    return text


def size_option(text: str) -> Decorator:
    """Return the option of the size that is used, with its help."""
    scratch_size = Quantity("SIZE", parse_scratch_size)
    return click.option("--size", default="", type=scratch_size, metavar="SIZE", help=text)


SIZE = size_option(
    "Size of the scratch file, or of the part of a device.  [default: 1g, or the whole device]"
)


_WORKLOADS = option_group(
    "workloads",
    Workloads,
    names_option(
        "--rw",
        "patterns",
        metavar="PATTERN,...",
        text="Access patterns.  [default: randread]",
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
    SIZE,
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
)


@click.command(
    "measure",
    cls=VerbCommand,
    epilog=examples(
        "volbench measure --on /mnt/data",
        "volbench measure --on /mnt/data --rw randread,randwrite --iodepth 1,32",
        "volbench measure --on /mnt/a --on /mnt/b --repeat 5",
        "volbench measure --for etcd --on /var/lib/etcd",
        "volbench measure --on /dev/sdb --rw read --bs 1m --runtime 1m",
    ),
)
@click.option(
    "--on",
    "targets",
    multiple=True,
    required=True,
    metavar="TARGET",
    help="Directory, device, file or NBD URI; several are compared with the first.",
)
@click.option(
    "--for",
    "application",
    type=click.Choice(APPLICATIONS),
    metavar="APPLICATION",
    help=f"Measure what an application does instead, and whether the volume is good enough for it, "
    f"where a threshold is published: {', '.join(APPLICATIONS)}.",
)
@_WORKLOADS
@EXPECT
@start_options("measure", execution=(KEEP_FILES,))
@SETTINGS
@table_options(has_output=False, has_events=True)
def measure(
    targets: tuple[str, ...],
    application: str | None,
    expectations: tuple[str, ...],
    *,
    workloads: Workloads,
    start: StartOptions,
    settings: tuple[str, ...],
    table_output: TableOutput,
) -> None:
    """Measure a workload on volumes, without a profile: a conclusion and a chart.

    With several targets, their runs alternate in random order, and each is compared with the first.
    In a directory, a scratch file is written once before it is read. The defaults take about 20 s.
    """
    roles = roles_of(targets)
    source = click.get_current_context().get_parameter_source("repeat")
    is_repeat_given = source is click.core.ParameterSource.COMMANDLINE
    changes = (f"repeat={workloads.repeat}", *settings) if is_repeat_given else settings
    click.echo(f"Checking {printable(mask_text(', '.join(targets)))}", err=True)
    from volbench.api.expectations import with_expected
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.model.frames.expectation import parse_expectation
    from volbench.plan.expansion.expand import Terms

    say_what_is_configured()
    if application is not None:
        profile = _application_profile(application, roles, changes)
    else:
        profile = profile_on(
            roles,
            _jobs(workloads),
            document={
                "name": "measure",
                "repeat": workloads.repeat,
                "defaults": {
                    "ioengine": workloads.ioengine,
                    "runtime": f"{workloads.runtime_s:.15g}s",
                },
            },
            size=workloads.size,
            settings=changes,
        )
    request = CampaignRequest(
        profiles=with_expected((profile,), [*map(parse_expectation, expectations)]),
        targets=roles,
        into=start.output or default_campaign_folder("measure"),
        terms=Terms(consent=start.consent, command=recorded_command(targets, start.output)),
    )
    ended = carry_out([this_machine()], request, start=start, table_output=table_output)
    if ended is not None:
        from volbench.api.many_campaigns import open_campaigns
        from volbench.present.terminal.conclusion import conclusion

        opened = open_campaigns(ended.layout.root)
        for line in conclusion(opened, folder=ended.layout.root, expected=ended.verdicts):
            table_output.note(line)
        try:
            for picture in _pictures(opened):
                table_output.note(f"Chart: {picture}")
        except InputError as error:  # no matplotlib: what was measured is as good without
            table_output.note(f"No chart: {error}")
        with reported_errors(table_output):
            refuse_unmet(ended.verdicts)


def _application_profile(
    application: str, roles: dict[str, str], settings: tuple[str, ...]
) -> Profile:
    """Return the bundled profile of an application, which --repeat and --set can change.

    Of several targets each has all of its jobs, and its expectations.
    """
    from volbench.execute.local import LocalExecutor
    from volbench.model.profile.profile_model import Order
    from volbench.plan.bundled_files import read_profile
    from volbench.plan.expansion.target_arms import on_each_target, target_names

    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in _CHOSEN
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    others = [name for name in given if name != "--repeat"]
    if others:
        raise InputError(
            f"{others[0]} cannot be used with --for: the profile {application} chooses it",
            hint=f"change the profile with --set {others[0].removeprefix('--')}=VALUE; see: "
            f"volbench profile show {quoted(application)}",
        )
    sources = [read_profile(application)]
    profile = load_texts(LocalExecutor(), sources, settings=settings, allow_exec=False)[0]
    if len(roles) == 1:
        return profile
    arms = {name: role for role, name in target_names(roles).items()}
    every = on_each_target(profile, {job.role: arms for job in profile.jobs})
    return every.model_copy(update={"order": Order.SHUFFLED})


def _pictures(opened: Dataset) -> Iterator[Path]:
    """Draw the chart that answers first into the report folder; yield its path."""
    from volbench.api.notebook import Chart
    from volbench.present.report.lead_charts import report_plots

    for plot in islice(report_plots(opened.plot_frame), 1):
        yield Chart(plot).save(report_folder(opened) / f"{plot.name}.svg")


def roles_of(targets: tuple[str, ...]) -> dict[str, str]:
    """Return role to target: ``data``, or ``a``, ``b``, ... for several."""
    for target in targets:
        role, sign, path = target.partition("=")
        if sign and role.isidentifier() and not Path(target).exists():
            raise InputError(
                f"--on {target} names the role {role!r}, but without a profile there are no roles",
                hint=f"write --on {path}",
            )
    if len(targets) > len(_LETTERS):
        raise InputError(
            f"{len(targets)} targets are too many",
            hint=f"measure up to {len(_LETTERS)}; for more write a profile and an inventory",
        )
    return dict(zip(_LETTERS if len(targets) > 1 else ("data",), targets, strict=False))


def profile_on(
    roles: Mapping[str, str],
    workloads: Iterable[tuple[str, Mapping[str, str]]],
    *,
    document: Mapping[str, Any],
    size: str,
    settings: Sequence[str],
    directories: Collection[str] | None = None,
    scratch_name: str = "volbench-scratch",
    filled: Collection[str] = (),
    allow_exec: bool = False,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Profile:
    """Return the profile that options stand for: workloads on each target, in random order.

    Args:
        roles: role to target.
        directories: roles whose target is a directory; None to look at the targets here.
        workloads: name and options of each.
        document: more content of the profile, with its name.
        size: of the scratch file in a directory, or of the part of a device; may be empty.
        scratch_name: name of that file.
        filled: roles that are written first, as all directories are.
        allow_exec: accept options that access files outside the run's folder.
        typed: key to the option that stands for it, where that has another name.
    """
    from volbench.engine.guard.volume_targets import find_volume
    from volbench.execute.local import LocalExecutor
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.model.document.yaml_text import yaml_text
    from volbench.plan.expansion.target_arms import target_names

    executor = LocalExecutor()
    names = dict.fromkeys(roles, "")
    if len(roles) > 1:
        names = {role: f"-{name}" for role, name in target_names(roles).items()}
    if directories is None:
        volumes = (find_volume(executor, role=role, target=roles[role]) for role in roles)
        directories = {each.role for each in volumes if each.kind is VolumeKind.DIRECTORY}
    scratch = {
        role: {"size": size or "1g", "filename": scratch_name}
        for role in roles
        if role in directories
    }
    content: dict[str, object] = {
        "order": "shuffled",
        **document,
        "defaults": {
            "ioengine": "libaio",
            "direct": 1,
            "refill_buffers": 1,
            "time_based": 1,
            **document.get("defaults", {}),
            **({"size": size} if size else {}),
        },
        "jobs": {
            f"{job}{names[role]}": {
                "role": role,
                **({"arm": names[role].removeprefix("-")} if len(roles) > 1 else {}),
                **options,
                **scratch.get(role, {}),
            }
            for job, options in workloads
            for role in roles
        },
    }
    is_small = "%" not in size and 0 < parse_size(size or "1g") < parse_size(_FILL_BLOCK)
    fill = _FILL | {"bs": size if is_small else _FILL_BLOCK}
    first_roles = {target: role for role, target in reversed([*roles.items()])}
    fills = {
        f"fill{names[role]}": {"role": role, **fill, **scratch.get(role, {})}
        for role in first_roles.values()
        if role in scratch or role in filled
    }
    if fills:
        content["phases"] = {"precondition": fills}
    try:
        sources = [(yaml_text(content), "<options>")]
        (profile,) = load_texts(executor, sources, settings=settings, allow_exec=allow_exec)
    except ProfileError as error:
        message = _PLACE.sub(lambda at: typed.get(at[1], f"--{at[1]}"), error.message)
        raise InputError(message, hint=error.hint) from error
    return profile


def _jobs(workloads: Workloads) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and options of each combination."""
    patterns = workloads.patterns or ("randread",)
    sizes, depths = workloads.block_sizes or ("4k",), workloads.iodepths or ("32",)
    for pattern, size, depth in product(patterns, sizes, depths):
        options = {"rw": pattern, "bs": size, "iodepth": depth}
        if workloads.numjobs > 1:
            options |= {"numjobs": str(workloads.numjobs), "group_reporting": "1"}
        yield f"{pattern}-{size}-qd{depth}", options
