"""Columns of the frames of latencies: percentiles, bins, classes, and latencies over time."""

from __future__ import annotations

from volbench.model.frames.frame_column import (
    IDENTITY,
    Column,
    real,
    text,
    whole,
)

PERCENTILE_ROWS: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write`, `trim` or `sync`."),
    text("latency", "`lat`, `clat` or `slat`."),
    real("percentile", "%", "From 0 to 100."),
    real("value_s", "s", "Latency at that percentile, as reported by fio."),
)

HISTOGRAM: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write`, `trim` or `sync`."),
    text("latency", "`lat`, `clat` or `slat`."),
    real("bin_s", "s", "Midpoint of fio's bin."),
    real("bin_low_s", "s", "Lower edge, inclusive."),
    real("bin_high_s", "s", "Upper edge, exclusive."),
    whole("count", "", "I/Os in the bin, summed over `numjobs`."),
)

# What fio reports without json+: a few wide classes, rounded to 0.01 %, without empty ones
SHARES: tuple[Column, ...] = (
    *IDENTITY,
    text("quantity", "`clat` (completion latency), or `iodepth` (I/Os in flight)."),
    real("low", "", "Lower end of the class, inclusive: s for `clat`, I/Os for `iodepth`."),
    real("high", "", "Upper end, exclusive; missing for the last class."),
    real("percent", "%", "Share of the I/Os of the section, all directions together."),
)

# Latencies over time, from per-I/O and histogram logs; empty without these
LATENCY_MAP: tuple[Column, ...] = (
    *IDENTITY,
    text("direction", "`read`, `write` or `trim`."),
    real("from_s", "s", "Start of the interval, from the start of the run's I/O."),
    real("t_s", "s", "End of the interval."),
    real("bin_low_s", "s", "Minimum latency, inclusive."),
    real("bin_high_s", "s", "Maximum latency, exclusive; one bin spans eight of fio's."),
    whole("count", "", "I/Os completed in the interval, summed over `numjobs`."),
)
