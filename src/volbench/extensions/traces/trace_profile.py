"""Profile of a trace: a few jobs that stand for the phases of a recorded load."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from volbench.errors import InputError, quoted
from volbench.extensions.traces.replay_plan import Load, Target, file_bytes, lane_count, load_trace
from volbench.extensions.traces.trace_file import Kind
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.document.yaml_text import yaml_text
from volbench.plan.profile.load_profile import load_profile
from volbench.units import counted_noun

# Phases of a profile: more are not short, and each is a run. Noticed by:
# tests/extensions/traces/test_trace_profile.py
MAX_PHASES = 6
# Intervals in which the load is looked at, and the shortest one. Noticed by: the same
_INTERVALS, _MIN_INTERVAL_S = 60, 1.0
_ROUNDED_UP = 0.1  # of an interval, in which the last one is shorter. Noticed by: the same
# Changes that begin a phase: of the rate, as a factor, and of the read share. Noticed by: the same
_RATE_FACTOR, _MIX_CHANGE = 2.0, 0.25
_SIZES = 8  # Block sizes of a direction; the rarest ones join the next larger. Noticed by: the same
_ZONES = 20  # Parts of the target whose share of the I/Os is kept. Noticed by: the same
# Variation of inter-arrival times from which arrivals are random; 1 is that of a Poisson process,
# 0 that of a clock. Noticed by: the same
_MIN_RANDOM = 0.7

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def profile_text(path: Path, name: str, *, note: Callable[[str], None]) -> str:
    """Return a profile in YAML that makes about the load of a trace.

    Args:
        note: called with a sentence on each part of the trace that the profile leaves out.

    Raises:
        InputError: it is no trace, or has no reads and writes.
    """
    load = load_trace(path, Target(None))
    kinds = load.rows["kind"].to_numpy()
    moves = (kinds == Kind.READ) | (kinds == Kind.WRITE)
    size_bytes = file_bytes(load, Target(None))  # Of whole blocks, as the fill needs
    left_out = load.left_out + int((~moves).sum())
    load = Load(load.rows.filter(pa.array(moves)), size_bytes, left_out)
    if not len(load.rows):
        raise InputError(
            f"{path} has no reads and writes",
            hint=f"volbench trace show {quoted(path)} lists its kinds of I/O",
        )
    if load.duration_s < _MIN_INTERVAL_S:
        raise InputError(
            f"{path} lasts only {load.duration_s:.2g} s; a profile needs {_MIN_INTERVAL_S:g} s",
            hint="replay the trace itself with volbench replay, or record a longer one",
        )
    if load.left_out:
        ios = counted_noun(load.left_out, "flush or discard I/O")
        note(f"{ios} left out: the profile has only reads and writes")
    depth = lane_count(load)
    jobs: dict[str, dict[str, Any]] = {}
    times = load.times_ns / 1e9
    for begin_s, end_s in _phases(load):
        chosen = (times >= begin_s) & (times < end_s)
        if not chosen.any():
            note(f"no reads or writes from {begin_s:.3g} s to {end_s:.3g} s: this time is left out")
            continue
        rows = load.rows.filter(pa.array(chosen))
        jobs[f"phase-{len(jobs) + 1}"] = _job(rows, load, end_s - begin_s)
    text = yaml_text(
        {
            "name": name,
            "defaults": {
                "ioengine": "libaio",
                "direct": 1,
                "iodepth": depth,
                "size": load.span_bytes,
                "filename": "volbench-scratch",
                "norandommap": 1,
                "refill_buffers": 1,
                "time_based": 1,
            },
            "phases": {
                "precondition": {
                    "fill": {
                        "rw": "write",
                        "bs": "1m",
                        "iodepth": 8,
                        "runtime": None,
                        "time_based": None,
                        "norandommap": None,
                    }
                }
            },
            "jobs": jobs,
        }
    )
    load_profile(text, path=f"the profile of {path}", table=shipped_table())
    return text


def _phases(load: Load) -> list[tuple[float, float]]:
    """Return begin and end of the phases: times in which rate and mix are about the same."""
    times = load.times_ns / 1e9
    whole_s = load.duration_s
    interval_s = max(_MIN_INTERVAL_S, whole_s / _INTERVALS)
    count = int(whole_s / interval_s + _ROUNDED_UP)  # the last one has what is left
    edges = interval_s * np.arange(count + 1)
    edges[-1] = np.nextafter(whole_s, np.inf)
    lengths = np.diff(edges) / interval_s
    totals = np.histogram(times, edges)[0] / lengths
    is_read = load.rows["kind"].to_numpy() == Kind.READ
    reads = np.histogram(times[is_read], edges)[0] / lengths
    parts = [(at, at + 1) for at in range(count)]
    while len(parts) > 1:
        costs = [_change(totals, reads, a, b) for a, b in pairwise(parts)]
        least = int(np.argmin(costs))
        if costs[least] > 1 and len(parts) <= MAX_PHASES:
            break
        parts[least : least + 2] = [(parts[least][0], parts[least + 1][1])]
    return [(float(edges[first]), float(edges[last])) for first, last in parts]


def _change(totals: Floats, reads: Floats, a: tuple[int, int], b: tuple[int, int]) -> float:
    """Return how different two neighbours are; 1 is the least difference of two phases."""
    (rate_a, mix_a), (rate_b, mix_b) = (
        (
            float(totals[slice(*part)].mean()),
            float(reads[slice(*part)].sum() / max(1, totals[slice(*part)].sum())),
        )
        for part in (a, b)
    )
    factor = (max(rate_a, rate_b) + 1) / (min(rate_a, rate_b) + 1)
    has_both = min(rate_a, rate_b) > 0
    return max(
        float(np.log(factor) / np.log(_RATE_FACTOR)),
        abs(mix_a - mix_b) / _MIX_CHANGE if has_both else 0.0,
    )


def _job(rows: pa.Table, load: Load, duration_s: float) -> dict[str, Any]:
    """Return the options of one phase."""
    is_read = rows["kind"].to_numpy() == Kind.READ
    reads, writes = int(is_read.sum()), int((~is_read).sum())
    sizes, offsets = rows["size_bytes"].to_numpy(), rows["offset_bytes"].to_numpy()
    pattern = "randrw" if reads and writes else "randread" if reads else "randwrite"
    split_read, split_write = _split(sizes[is_read]), _split(sizes[~is_read])
    is_mixed = pattern == "randrw"
    gaps = np.diff(rows["time_ns"].to_numpy())
    is_random = bool(len(gaps) and gaps.mean() and gaps.std() / gaps.mean() >= _MIN_RANDOM)
    # fio 3.33 takes each I/O of a linear rate_iops for one of the smallest block
    is_counted = is_random or not any(":" in split for split in (split_read, split_write))
    totals = (reads, writes) if is_counted else (sizes[is_read].sum(), sizes[~is_read].sum())
    rates = [max(1, round(total / duration_s)) for total in totals]
    rate_name = "rate_iops" if is_counted else "rate"
    options: dict[str, Any] = {
        "rw": pattern,
        "runtime": f"{round(1000 * duration_s)}ms",
        "bssplit": f"{split_read},{split_write}" if is_mixed else split_read or split_write,
        rate_name: ",".join(map(str, rates)) if is_mixed else max(rates),
        "random_distribution": f"zoned:{_zones(offsets, load.span_bytes)}",
    }
    if is_mixed:
        options["rwmixread"] = round(100 * reads / (reads + writes))
    if is_random:
        options["rate_process"] = "poisson"
    following = float(np.mean(offsets[1:] == (offsets + sizes)[:-1])) if len(offsets) > 1 else 0.0
    if round(100 * following):
        options["percentage_random"] = 100 - round(100 * following)
    return options


def _split(sizes: Ints) -> str:
    """Return the sizes with their shares as fio's ``bssplit``; empty for none."""
    if not len(sizes):
        return ""
    found, counts = np.unique(sizes, return_counts=True)
    while len(found) > _SIZES:
        rare = int(np.argmin(counts[:-1]))
        counts[rare + 1] += counts[rare]
        found, counts = np.delete(found, rare), np.delete(counts, rare)
    shares = _percentages(counts)
    return ":".join(
        f"{size}/{share}" for size, share in zip(found.tolist(), shares, strict=True) if share
    )


def _zones(offsets: Ints, span_bytes: int) -> str:
    """Return the share of the I/Os in each part of the target, as fio's zones."""
    counts = np.histogram(offsets, np.linspace(0, span_bytes, _ZONES + 1))[0]
    width = 100 // _ZONES
    zones: list[tuple[int, int]] = []
    for share, zone in groupby(_percentages(counts)):
        parts = len([*zone])
        zones.append((share * parts, width * parts))
    return ":".join(f"{share}/{size}" for share, size in zones)


def _percentages(counts: Ints) -> list[int]:
    """Return shares in whole percent that add up to 100: fio refuses others."""
    exact = 100 * counts / counts.sum()
    whole = np.floor(exact).astype(int)
    for index in np.argsort(whole - exact)[: 100 - int(whole.sum())]:
        whole[index] += 1
    return [int(share) for share in whole]
