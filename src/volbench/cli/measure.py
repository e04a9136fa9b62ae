"""Verbs measure (a workload on volumes, with a conclusion) and noise (of equal arms)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from volbench.api.run_profiles import load_texts
from volbench.cli.compare import parse_difference
from volbench.cli.configuration import say_what_is_configured
from volbench.cli.execution import (
    StartOptions,
    carry_out,
    reported_errors,
    start_options,
    write_answer,
)
from volbench.cli.expect import refuse_unmet
from volbench.cli.options import (
    EXPECT,
    KEEP_FILES,
    SETTINGS,
    UNTIL,
    Decorator,
    Quantity,
    examples,
    names_option,
    option_group,
)
from volbench.cli.output import (
    ChartFile,
    TableOutput,
    chart_options,
    default_campaign_folder,
    recorded_command,
    report_folder,
    table_options,
)
from volbench.cli.verb_groups import VerbCommand
from volbench.errors import ComparisonError, InputError, ProfileError, quoted
from volbench.model.profile.secret_values import mask_text
from volbench.present.formatting import printable
from volbench.units import counted_noun, format_duration, parse_duration, parse_size

if TYPE_CHECKING:
    from volbench.analyse.compare.noise_floor import NoiseFloor
    from volbench.api.many_campaigns import Dataset
    from volbench.model.profile.profile_model import Profile


# Writes every block of the scratch file once, so that no read finds one never written
_FILL = {"rw": "write", "iodepth": 8, "runtime": None, "time_based": None}
_FILL_BLOCK = "1m"  # or the whole of a smaller file


# Where the loader found a problem, in the profile that stands for the options, and its key
_PLACE = re.compile(r"^<options>:\d+:\d+: (?:jobs\.[^.\n]+\.|defaults\.|)(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Workloads:
    """What is measured: every combination of pattern, block size and queue depth."""

    patterns: tuple[str, ...]  # values of fio's `rw`
    block_sizes: tuple[str, ...]  # values of `bs`
    iodepths: tuple[str, ...]  # values of `iodepth`
    numjobs: int  # jobs in parallel
    size: str  # of the scratch file; empty for 1 GiB, or the whole of a device
    runtime_s: float  # of each run
    ioengine: str  # I/O engine of fio
    repeat: int  # runs of each combination
    until: tuple[str, ...]  # settings that replace that number


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

# Parameters of the options that a bundled profile chooses instead
_CHOSEN = frozenset(
    {"patterns", "block_sizes", "iodepths", "numjobs", "size", "runtime_s", "ioengine", "repeat"}
)

# Bundled profiles of what an application does with its disk, for --for
APPLICATIONS = ("elasticsearch", "etcd", "kafka", "postgresql", "prometheus", "vm-root-disk")

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
    UNTIL,
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
@start_options(execution=(KEEP_FILES,))
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
    repeat = (f"--repeat={workloads.repeat}",) * is_repeat_given
    changes = (*repeat, *workloads.until, *settings)
    click.echo(f"Checking {printable(mask_text(', '.join(targets)))}", err=True)
    from volbench.api.expectations import read_expectations, with_expected
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import this_machine
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
        profiles=with_expected((profile,), read_expectations(expectations)),
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
    from volbench.model.frames.columns import FRAMES
    from volbench.present.report.lead_charts import lead_plots

    for plot in lead_plots({name: opened.frame(name) for name in FRAMES})[:1]:
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
    twice = next((name for index, name in enumerate(targets) if name in targets[:index]), None)
    if twice is not None:
        raise InputError(f"--on {twice} is named twice", hint="name each target once")
    if len(targets) > len(_LETTERS):
        raise InputError(
            f"{len(targets)} targets are too many",
            hint=f"measure up to {len(_LETTERS)}; for more write a profile and an inventory",
        )
    return dict(zip(_LETTERS if len(targets) > 1 else ("data",), targets, strict=False))


_LETTERS = "abcdefghijkl"


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
    fills = {
        f"fill{names[role]}": {"role": role, **fill, **scratch.get(role, {})}
        for role in roles
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


# Runs long enough that fio's start, some 50 ms, does not count, and short enough for many blocks.
# Noticed by: tests/cli/test_noise.py::test_a_time_without_room_for_five_blocks_is_refused
_RUN_S = 3.0
# Time between two runs, in which fio starts and results are read; 1 to 2 s were measured.
# Noticed by: tests/cli/test_noise.py::test_a_time_without_room_for_five_blocks_is_refused
_PAUSE_S = 1.0
# Blocks from which the order within them is known, too.
# Noticed by: tests/cli/test_noise.py::test_a_time_without_room_for_five_blocks_is_refused
_MIN_BLOCKS = 5
_ARMS = ("a", "b")


def _blocks_in(seconds: float) -> int:
    """Return the number of blocks that fit a time."""
    count = int(seconds / (len(_ARMS) * (_RUN_S + _PAUSE_S)))
    if count < _MIN_BLOCKS:
        least = f"{_MIN_BLOCKS * len(_ARMS) * (_RUN_S + _PAUSE_S):g}s"
        raise InputError(
            f"{format_duration(seconds)} has room for {counted_noun(count, 'block')}; the minimum"
            f" is {_MIN_BLOCKS}",
            hint=f"write --for {least} or more",
        )
    return count


@click.command(
    "noise",
    cls=VerbCommand,
    epilog=examples(
        "volbench noise --on /mnt/data",
        "volbench noise --on /dev/sdb --for 10m --chart noise.svg",
        "volbench noise volbench-results/noise-20261126-101500 --detect 5%",
    ),
)
@click.argument(
    "campaign", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--on", "target", metavar="TARGET", help="Directory, device, file or NBD URI.")
@click.option(
    "--for",
    "for_s",
    type=Quantity("TIME", parse_duration),
    default="5m",
    show_default=True,
    help="Time to measure; more blocks know the noise better.",
)
@click.option(
    "--detect",
    type=Quantity("PERCENT", parse_difference),
    help="Say how many blocks, and how much time, a difference of this size needs.",
)
@SIZE
@start_options(execution=(KEEP_FILES,))
@SETTINGS
@table_options(has_output=False, has_events=True)
@chart_options("blocks over time and the noise floor")
def noise(
    campaign: Path | None,
    target: str | None,
    for_s: float,
    detect: float | None,
    size: str,
    *,
    start: StartOptions,
    settings: tuple[str, ...],
    table_output: TableOutput,
    picture: ChartFile,
) -> None:
    """Measure how small a difference can be seen on a volume: a job against itself, in blocks.

    Random 4k reads at queue depth 16 run as two equal arms. Their scatter gives the smallest
    difference that any number of blocks detects here. With CAMPAIGN instead of --on, an earlier
    campaign with two arms is evaluated.
    """
    if campaign is not None and target is not None:
        raise InputError("--on and an earlier campaign exclude each other", hint="leave out one")
    if campaign is None and target is None:
        raise InputError("name a target or an earlier campaign", hint="write --on /mnt/data")
    if target is not None:
        campaign = _measured(target, _blocks_in(for_s), size, start, settings, table_output)
    if campaign is not None:
        _report(campaign, detect, table_output, picture)


def _measured(
    target: str,
    blocks: int,
    size: str,
    start: StartOptions,
    settings: tuple[str, ...],
    table_output: TableOutput,
) -> Path | None:
    """Run the arms; return the campaign's folder, or None if it has not ended."""
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import this_machine
    from volbench.plan.expansion.expand import Terms

    say_what_is_configured()
    roles = roles_of((target,))
    options = {"rw": "randread", "bs": "4k", "iodepth": "16"}
    profile = profile_on(
        roles,
        [(f"randread-4k-qd16-{arm}", {**options, "arm": arm}) for arm in _ARMS],
        document={
            "name": "noise",
            "repeat": blocks,
            "order": "listed",
            "defaults": {"runtime": f"{_RUN_S:g}s"},
        },
        size=size,
        settings=settings,
    )
    request = CampaignRequest(
        profiles=(profile,),
        targets=roles,
        into=start.output or default_campaign_folder("noise"),
        terms=Terms(consent=start.consent, command=recorded_command((target,), start.output)),
    )
    ended = carry_out(
        [this_machine()],
        request,
        start=start,
        table_output=table_output,
        has_answer=not table_output.is_for_people,
    )
    return None if ended is None else ended.layout.root


def _report(
    campaign: Path, detect: float | None, table_output: TableOutput, picture: ChartFile
) -> None:
    from volbench.analyse.compare.comparison import Question
    from volbench.analyse.compare.noise_floor import noise_floors
    from volbench.api.compare_campaigns import compare_folders
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.plots.chart import build_plot
    from volbench.present.plots.kinds import ALWAYS_READ, KINDS
    from volbench.present.tables.noise_table import noise_table

    opened = open_campaigns(campaign)
    floors: list[NoiseFloor] = []
    if any(data.campaign.design for data in opened.names.values()):
        comparison = compare_folders([campaign], Question())
        summary, device = (opened.frame(name) for name in ("summary", "device"))
        floors = list(noise_floors(comparison, summary, device))
    if not floors:
        raise ComparisonError(
            f"{campaign} has no arms in blocks on one volume",
            hint="measure it with volbench noise --on TARGET",
        )
    are_equal = all(data.campaign.has_equal_arms for data in opened.names.values())
    table = noise_table(floors, detect=detect, are_equal=are_equal)
    write_answer(table, table_output)
    if picture.chart:
        names = (*ALWAYS_READ, *KINDS["noise"].frame_names)
        frames = {name: opened.plot_frame(name) for name in names}
        picture.write(build_plot("noise", frames, title=picture.title or None), table)
