"""Estimates of time and bytes written, and deadlines of runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from volbench.model.campaign.planned_files import file_ranges, transferred_bytes
from volbench.model.campaign.planned_run import Campaign, Run, Section, VolumeKind
from volbench.model.profile.option_policy import MEMORY_ENGINES, block_sizes
from volbench.model.profile.profile_model import Start
from volbench.model.profile.profile_settings import MIN_ROUNDS
from volbench.units import parse_duration

# Minimum bandwidth of laying out a file; a slower volume needs a longer grace. Noticed by:
# tests/plan/expansion/test_estimate.py::test_deadlines_grow_with_what_takes_longer
LAYOUT_BYTES_PER_S = 20e6

# Minimum bandwidth of a run without runtime, unless its own rate or think time is slower: 4k reads
# at 250 IOPS. Noticed by:
# tests/plan/expansion/test_estimate.py::test_deadlines_grow_with_what_takes_longer
TRANSFER_BYTES_PER_S = 1e6

# From the end of a runtime to the next start: fio's own 0.5 s (3.33), results, checks. Measured:
# 0.9 to 1.2 s. Noticed by:
# tests/plan/expansion/test_estimate.py::test_a_campaign_is_the_sum_of_its_runs
START_S = 1.0

# Before the first run and after the last one: the plan, the checks of the volumes, the tables.
# Noticed by: tests/cli/test_estimated_time.py::test_the_estimate_is_the_time_of_a_real_run
CAMPAIGN_S = 3.0

# Assumed rate of writing files and of runs that fill a volume in large blocks, where no limit is
# declared: that of usual cloud volumes (gp3: 125 MiB/s; P10: 100 MB/s). Noticed by:
# tests/plan/expansion/test_estimate.py::test_files_are_laid_out_at_a_rate
FILL_BYTES_PER_S = 100e6
_MIN_FILL_BLOCK = 64 << 10  # Smaller blocks are limited by IOPS, of which nothing can be assumed

# Maximum length of one read of a cold probe. Noticed by:
# tests/plan/expansion/test_estimate.py::test_rounds_have_a_minimum_and_a_maximum_time
PROBE_READ_S = 30.0

PROBE_READS = 3  # Number of reads in a cold probe: a sample of blocks twice, and a check for zeros

# A campaign that may take longer asks for confirmation: the trade-off is a question too many
# against an hour lost. Noticed by:
# tests/cli/test_verbosity.py::test_a_long_campaign_needs_confirmation
LONG_S = 3600.0

# A campaign that may write more than this many capacities of a device asks for confirmation; SNIA's
# preconditioning writes two (PTS 2.0.2). Noticed by:
# tests/cli/test_verbosity.py::test_a_long_campaign_needs_confirmation
MUCH = 2.0


TimeOf = Callable[[Run], float | None]

_MIXED = frozenset({"rw", "readwrite", "randrw"})


@dataclass(frozen=True)
class Estimate:
    """Estimated time and bytes written of a campaign."""

    runs: int  # number of runs
    # maximum duration, without runs limited by size only; None when no run has a known duration
    total_s: float | None
    bytes_written: int | None  # maximum, from sizes and declared limits; None when unbounded
    is_most: bool = False  # whether some runs may end early or may not be needed
    min_runs: int = 0  # number of runs if steady state is reached as early as possible
    # duration in that case; equal to `total_s` when no run may end early
    min_s: float | None = None
    min_bytes: int | None = None  # bytes written in that case
    bounded_bytes: int = 0  # maximum bytes written by runs limited by size or declared limits
    lays_out: bool = False  # whether runs write nothing but files that they read and miss
    unbounded: int = 0  # runs that write as much as possible in their time
    untimed: int = 0  # runs not included in the durations
    # maximum writes to the most written device, in multiples of its capacity; 0 where no device is
    # written, or this is unknown
    times_capacity: float = 0.0
    fill_s: float = 0.0  # part of the durations at `FILL_BYTES_PER_S`, where no limit is declared
    # whether runs write through the page cache; no duration includes what is written back after
    # them
    is_cached: bool = False

    @property
    def is_long(self) -> bool:
        """Whether the duration requires a confirmation before the start."""
        return (self.total_s or 0.0) > LONG_S or self.times_capacity > MUCH


def estimate(campaign: Campaign) -> Estimate:
    """Return time and bytes of a campaign, as far as the plan determines them."""
    runs = campaign.runs
    # Those that run even if steady state or precision is reached as early as possible
    least = dict.fromkeys(campaign.rounds, MIN_ROUNDS)
    least.update((profile, repeat.least) for profile, repeat in campaign.repeats.items())
    spare = {job for ladder in campaign.ladders for job in ladder[2:]}  # deeper queues
    needed = [r for r in runs if r.repeat <= least.get(r.profile, r.repeat) and r.job not in spare]
    written = _all_written(runs)
    probe_s = PROBE_READS * PROBE_READ_S * len(campaign.cold_probe_roles)
    assumed = [run for run in runs if run.limits.bandwidth_bytes_per_s is None]
    layouts, filled = _layouts_s(runs), [run for run in assumed if expected_s(run) is None]
    return Estimate(
        runs=len(runs),
        total_s=_total_s(runs, lambda run: _most_s(run, layouts), before_s=probe_s),
        bytes_written=_total_bytes(runs),
        is_most=len(needed) < len(runs) or any(map(_may_end_before, runs)),
        min_runs=len(needed),
        min_s=_total_s(needed, lambda run: _min_s(run, layouts), before_s=0.0),
        min_bytes=_total_bytes(needed),
        bounded_bytes=sum(count or 0 for count in written),
        lays_out=not any(_moved_bytes(run) != 0 for run in runs),
        unbounded=written.count(None),
        untimed=sum(_own_s(run) is None for run in runs),
        times_capacity=_times_capacity(runs),
        fill_s=sum(layouts[run.id] for run in assumed)
        + sum(_by_limits_s(run) or 0.0 for run in filled),
        is_cached=any(map(_is_cached, runs)),
    )


def _may_end_before(run: Run) -> bool:
    """Return whether a run may end before its runtime: when steady, or at the end of its size."""
    timed = [run.effective(section) for section in run.sections]
    sized = any("runtime" in options and options.get("time_based", "0") == "0" for options in timed)
    return run.until is not None or sized


def _layouts_s(runs: Sequence[Run]) -> dict[str, float]:
    """Return by run ID how long it takes to write the files that it reads and that are new."""
    there: set[tuple[str, str]] = set()
    layouts = {}
    for run in runs:
        files = {(run.host, path): end for path, (_, end) in _new_files(run).items()}
        new_bytes = sum(size for key, size in files.items() if key not in there)
        rate = run.limits.bandwidth_bytes_per_s or FILL_BYTES_PER_S
        layouts[run.id] = new_bytes / rate if _reads_files(run) else 0.0
        there |= files.keys()
    return layouts


def _new_files(run: Run) -> Mapping[str, tuple[int, int]]:
    """Return the range of each file that a run may have to make: of none that a user named."""
    is_named = all(v.kind is VolumeKind.FILE and not v.private_folder for v in run.volume.each)
    return {} if is_named else file_ranges(run)


def _reads_files(run: Run) -> bool:
    """Return whether fio lays the new files of a run out: it does not for one that only writes."""
    patterns = {
        run.effective(section).get("rw", "read").partition(":")[0] for section in run.sections
    }
    return run.extent is None and not patterns <= {"write", "randwrite", "trim", "randtrim"}


def _total_s(runs: Sequence[Run], time_of: TimeOf, *, before_s: float) -> float | None:
    times = [_step_s(step, time_of) for step in _runs_by_step(runs)]
    known = [time for time in times if time is not None]
    return CAMPAIGN_S + before_s + sum(known) + START_S * len(times) if known else None


def _total_bytes(runs: Sequence[Run]) -> int | None:
    bounded = [count for count in _all_written(runs) if count is not None]
    return sum(bounded) if len(bounded) == len(runs) else None


def _times_capacity(runs: Sequence[Run]) -> float:
    """Return the writes to the most written device, in multiples of its capacity."""
    written: dict[tuple[str, str], float] = {}
    for run in runs:
        if size_bytes := run.volume.size_bytes:
            share = (_moved_bytes(run) or 0) / size_bytes
            device = run.host, run.volume.target
            written[device] = written.get(device, 0.0) + share
    return max(written.values(), default=0.0)


def _runs_by_step(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of each step; a run without a step forms its own."""
    steps: dict[int | str, list[Run]] = {}
    for run in runs:
        steps.setdefault(run.step or run.id, []).append(run)
    return list(steps.values())


def _step_s(runs: list[Run], time_of: TimeOf) -> float | None:
    """Return the duration of a step from its first start; None when unknown."""
    known = [(run, time) for run in runs if (time := time_of(run)) is not None]
    if any(run.start is Start.SEQUENTIAL for run in runs):
        return sum(time for _, time in known) if known else None
    return max((run.start_offset_s + time for run, time in known), default=None)


def _most_s(run: Run, layouts_s: Mapping[str, float]) -> float | None:
    """Return the duration of a run with its layout; of the layout if nothing limits the run."""
    own_s, before_s = _own_s(run), layouts_s[run.id]
    return (before_s or None) if own_s is None else before_s + own_s


def _own_s(run: Run) -> float | None:
    """Return the duration of a run, from its size where it has no runtime."""
    own_s = expected_s(run)
    return _by_limits_s(run) if own_s is None else own_s


def _min_s(run: Run, layouts_s: Mapping[str, float]) -> float | None:
    """Return the duration of a run that is steady in its first window."""
    most_s = _most_s(run, layouts_s)
    if most_s is None or run.until is None:
        return most_s
    return min(most_s, layouts_s[run.id] + run.until.window_s)


def _by_limits_s(run: Run) -> float | None:
    """Return the duration of a run from its size and limits, declared or assumed; or None."""
    moved = [transferred_bytes(run, section) for section in run.sections]
    if run.extent is not None:
        moved = [run.extent.size_bytes]
    limits = run.limits
    blocks = [min(block_sizes(run.effective(section))) for section in run.sections]
    rates = [
        limits.bandwidth_bytes_per_s,
        None if limits.iops is None else limits.iops * min(blocks),
    ]
    known = [rate for rate in rates if rate]
    if not known and min(blocks) >= _MIN_FILL_BLOCK:
        known = [FILL_BYTES_PER_S]
    sizes = [size for size in moved if size is not None]
    return sum(sizes) / min(known) if known and len(sizes) == len(moved) else None


def expected_s(run: Run) -> float | None:
    """Return the duration of a run from its runtime, ramp and delay; None without runtime.

    Sections run in parallel, except those that wait for another one (fio HOWTO, wait_for).
    """
    ends: dict[str, float | None] = {}
    for section in run.sections:
        options = run.effective(section)
        own_s, before_s = _timed_s(options), ends.get(options.get("wait_for", ""), 0.0)
        known = own_s is not None and before_s is not None
        ends[section.name] = (before_s or 0.0) + (own_s or 0.0) if known else None
    times = [end for end in ends.values() if end is not None]
    return max(times) if len(times) == len(ends) else None


def deadline_s(run: Run, *, grace_s: float) -> float:
    """Return the deadline of a run in seconds, from runtime, layout and grace.

    Infinite for a run limited by neither a runtime nor a known size, such as a read of a whole
    existing file.
    """
    sized_s = 0.0
    ends: dict[str, float] = {}
    for section in run.sections:
        options = run.effective(section)
        own_s = _timed_s(options)
        if own_s is None:
            sized_s += _sized_s(run, section)
        ends[section.name] = (own_s or 0.0) + ends.get(options.get("wait_for", ""), 0.0)
    timed_s = max(ends.values())
    one_by_one = any("wait_for" in run.effective(section) for section in run.sections)
    work_s = timed_s + sized_s if one_by_one else max(timed_s, sized_s)
    return work_s + layout_bytes(run) / LAYOUT_BYTES_PER_S + grace_s


def layout_bytes(run: Run) -> int:
    """Return the maximum bytes of files that a run lays out; 0 for devices and exports."""
    return sum(end for _, end in file_ranges(run).values())


def _timed_s(options: dict[str, str]) -> float | None:
    """Return the duration of a section from its runtime; None without one."""
    runtime_s = parse_duration(options.get("runtime", "0"))
    return runtime_s + _before_s(options) if runtime_s else None


def _before_s(options: dict[str, str]) -> float:
    return sum(parse_duration(options.get(name, "0")) for name in ("ramp_time", "startdelay"))


def _sized_s(run: Run, section: Section) -> float:
    """Return the maximum duration of a section without runtime; infinite when its size is unknown.

    Rate and think time apply to each of numjobs (fio HOWTO); applying them to the sum only extends
    the deadline.
    """
    options = run.effective(section)
    moved_bytes = transferred_bytes(run, section)
    if moved_bytes is None:
        return math.inf
    block_bytes = min(block_sizes(options))
    rates = [TRANSFER_BYTES_PER_S, *map(float, _positive_numbers(options.get("rate")))]
    rates += [count * block_bytes for count in _positive_numbers(options.get("rate_iops"))]
    pauses = moved_bytes / block_bytes / max(1, int(options.get("thinktime_blocks", "1")))
    thinking_s = pauses * int(options.get("thinktime", "0")) / 1e6
    return _before_s(options) + moved_bytes / min(rates) + thinking_s


def _positive_numbers(text: str | None) -> list[int]:
    """Return the numbers above 0 of a value such as ``4096,,8192`` or ``4096-65536``."""
    return [int(n) for n in re.split(r"[,-]", text or "") if n.isdecimal() and int(n)]


def _is_cached(run: Run) -> bool:
    """Return whether a run writes through the page cache of a file or a device."""
    if run.volume.kind not in {VolumeKind.DIRECTORY, VolumeKind.FILE, VolumeKind.DEVICE}:
        return False
    through = any(run.effective(section).get("direct", "0") == "0" for section in run.sections)
    return through and _moved_bytes(run) != 0


def _all_written(runs: Sequence[Run]) -> list[int | None]:
    """Return the bytes written by each run; files laid out by earlier runs count once."""
    there: dict[tuple[str, str], int] = {}
    totals: list[int | None] = []
    for run in runs:
        laid_out = 0
        for path, (_, end) in _new_files(run).items():
            file = run.host, path
            laid_out += end if end > there.get(file, 0) else 0
            there[file] = max(end, there.get(file, 0))
        moved = _moved_bytes(run)
        if moved is not None:  # a file that is only written is allocated, and then written once
            moved = moved + laid_out if _reads_files(run) else max(moved, laid_out)
        totals.append(moved)
    return totals


def _moved_bytes(run: Run) -> int | None:
    """Return the maximum bytes a run writes, without layouts; None when unbounded."""
    total = 0
    for section in run.sections:
        options = run.effective(section)
        access = options.get("rw", "read").partition(":")[0]
        only_reads = access in {"read", "randread"} or (
            access in _MIXED and options.get("rwmixread") == "100"
        )
        is_in_memory = options.get("ioengine") in MEMORY_ENGINES
        if is_in_memory or (only_reads and "read_iolog" not in options):
            continue
        moved = transferred_bytes(run, section)
        if moved and options.get("sprandom", "0") != "0":  # the spare blocks of a drive as well
            moved += math.ceil(moved * float(options.get("spr_op", "0.15")))
        if moved is None or (options.get("time_based", "0") != "0" and _timed_s(options)):
            moved = _within_limits_bytes(run, options)
        if moved is None:
            return None
        total += moved
    return total


def _within_limits_bytes(run: Run, options: dict[str, str]) -> int | None:
    """Return the maximum bytes a section writes within declared limits, bursts included."""
    own_s = _timed_s(options)
    limits, block_bytes = run.limits, max([*block_sizes(options), 4096])
    iops = limits.burst_iops or limits.iops
    known = [
        limits.burst_bandwidth_bytes_per_s or limits.bandwidth_bytes_per_s,
        None if iops is None or "bssplit" in options else iops * block_bytes,
    ]
    rates = [rate for rate in known if rate]
    return None if own_s is None or not rates else math.ceil(own_s * min(rates))
