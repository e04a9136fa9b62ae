"""Command of a run: argument list, input files and expected results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from volbench.execute.agent.gate import PRERUN
from volbench.fio.jobs.render_job import lays_out, render, replays, runtime_s, writes
from volbench.fio.results.validation import Expected
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.results.result import Direction
from volbench.plan.expansion.estimate import expected_s
from volbench.store.layout import FIO_OUTPUT, JOB_FILE

_DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "read": (Direction.READ,),
    "randread": (Direction.READ,),
    "write": (Direction.WRITE,),
    "randwrite": (Direction.WRITE,),
    "trim": (Direction.TRIM,),
    "randtrim": (Direction.TRIM,),
    "trimwrite": (Direction.TRIM, Direction.WRITE),
    "randtrimwrite": (Direction.TRIM, Direction.WRITE),
    "rw": (Direction.READ, Direction.WRITE),
    "readwrite": (Direction.READ, Direction.WRITE),
    "randrw": (Direction.READ, Direction.WRITE),
}

# Probability below which a direction of a mix is not missing by chance: one false alarm in a
# million runs. Noticed by: test_tool_command.py::test_a_mix_expects_directions_not_absent_by_chance
_BY_CHANCE = 1e-6
# I/Os assumed for a job without a limit on size or number: one second on a slow disk.
# Noticed by: test_tool_command.py::test_a_mix_expects_directions_not_absent_by_chance
_IOS_OF_ANY_JOB = 100


@dataclass(frozen=True)
class Command:
    """Command of one process."""

    argv: list[str]  # the argument list
    shown: list[str]  # the argument list without paths of this machine, for status.json
    files: dict[str, str] = field(default_factory=dict)  # name to content of its input files
    # expected runtime in seconds; None if only the data size limits it
    expected_s: float | None = None


def command_of(run: Run, *, fio: str, is_gated: bool = False) -> Command:
    """Return the command of a run."""
    options = [
        "--output-format=json+",
        f"--output={FIO_OUTPUT}",
        "--eta=always",
        "--eta-interval=500ms",
        *([] if writes(run) or lays_out(run) else ["--readonly"]),
        JOB_FILE,
    ]
    # fio counts the waits of a log from its own start, so it starts after the gate: the supervisor
    # lets all programs but fio itself wait there before their start.
    waits_before = is_gated and replays(run)
    return Command(
        [*(["env"] if waits_before else []), fio, *options],
        ["fio", *options],
        {JOB_FILE: render(run, prerun=PRERUN if is_gated and not waits_before else "")},
        expected_s(run),
    )


def expected_of(run: Run) -> tuple[Expected, ...]:
    """Return the results that fio must report for a run to succeed."""
    entries = tuple(_expected(run, section) for section in run.sections)
    if any(_flag(run.effective(section), "exitall") for section in run.sections):
        return tuple(replace(expected, runtime_s=None) for expected in entries)
    return entries


def _expected(run: Run, section: Section) -> Expected:
    options = run.effective(section)
    # cpuio reports its cycles as reads with zero latency.
    # The job file of several sections is written without it.
    is_grouped = len(run.sections) == 1 and _flag(options, "group_reporting")
    # A verified write stops early enough to read back what it wrote (fio HOWTO, verify).
    is_verified = "verify" in options and "write" in options.get("rw", "read")
    is_short = is_verified or options.get("ioengine") == "cpuio"
    timed = _flag(options, "time_based") and not is_short
    return Expected(
        name=section.name,
        entries=1 if is_grouped else int(options.get("numjobs", "1")),
        directions=_directions(options),
        runtime_s=runtime_s(run, section) if timed else None,
    )


def _flag(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0") != "0"


def _directions(options: Mapping[str, str]) -> tuple[Direction, ...]:
    """Return the directions that must show I/O; in a mix, only the likely ones."""
    if _flag(options, "create_only") or "read_iolog" in options:
        return ()
    directions = _DIRECTIONS.get(options.get("rw", "read").partition(":")[0], ())
    if directions != (Direction.READ, Direction.WRITE):
        return directions
    writes_percent = int(options.get("rwmixwrite", "50"))
    reads = int(options.get("rwmixread", str(100 - writes_percent))) / 100
    shares = ((Direction.READ, reads), (Direction.WRITE, 1 - reads))
    ios = _min_ios(options)
    return tuple(name for name, share in shares if (1 - share) ** ios < _BY_CHANCE)


def _min_ios(options: Mapping[str, str]) -> int:
    """Return the minimum number of I/Os of a job according to its options."""
    if "number_ios" in options:
        return int(options["number_ios"])
    size = options.get("io_size", options.get("size", ""))
    block = options.get("bs", "4096")
    sized = size.isdecimal() and block.isdecimal() and not {"bsrange", "bssplit"} & options.keys()
    if _flag(options, "time_based") or not sized:
        return _IOS_OF_ANY_JOB
    return int(size) // int(block)
