"""What a chart's note tells of its numbers: the summary enters, short sentences leave."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from volbench.analyse.frames.job_frames import KEY, key_of, measured
from volbench.present.formatting import printable
from volbench.units import format_duration, format_size

_NOUNS = {
    "campaign": "campaigns",
    "profile": "profiles",
    "host": "hosts",
    "volume": "volumes",
    "client": "clients",
    "repeat": "repeats",
}
_MOST_VALUES = 3


def setting(summary: pd.DataFrame) -> str:
    """Return what the measured Runs have in common, such as ``randread 4k, depth 16, direct``.

    Cache, depth, block size, volume and length are what a number can't be read without. What
    differs is told as a range, or left to the labels where it takes too many words.
    """
    rows = measured(summary)
    rows = rows[rows["direction"] != "sync"]
    parts = [_blocks(rows), _depths(rows), _cache(rows), _volumes(rows), _lengths(rows)]
    told = ", ".join(part for part in parts if part)
    return told[:1].upper() + told[1:]


def pooled(summary: pd.DataFrame) -> str:
    """Return what stands behind one mark of a chart, such as ``3 repeats``; "" for one Run each."""
    rows = measured(summary)
    if rows.empty:
        return ""
    groups = rows.groupby(key_of(rows, KEY), sort=False, dropna=False)
    told = []
    for column, noun in _NOUNS.items():
        if column not in rows or column in key_of(rows, KEY):
            continue
        counts = groups[column].nunique()
        most, least = int(counts.max()), int(max(1, counts.min()))
        if most > 1:
            told.append(f"{most} {noun}" if most == least else f"{least} to {most} {noun}")
    return f"Pooled: {', '.join(told)}" if told else ""


def listed(values: Sequence[str], *, noun: str, most: int = _MOST_VALUES) -> str:
    """Return a few values, or how many there are."""
    if len(values) <= most:
        return ", ".join(printable(value) for value in values)
    return f"{len(values)} {noun}"


def _blocks(rows: pd.DataFrame) -> str:
    sizes = sorted(rows["block_bytes"].dropna().unique())
    if not sizes:
        return ""
    if len(sizes) == 1:
        return f"block {format_size(float(sizes[0]))}"
    return f"blocks {format_size(float(sizes[0]))} to {format_size(float(sizes[-1]))}"


def _depths(rows: pd.DataFrame) -> str:
    depths = sorted(int(depth) for depth in rows["iodepth"].dropna().unique())
    if not depths:
        return ""
    return f"depth {depths[0]}" if len(depths) == 1 else f"depth {depths[0]} to {depths[-1]}"


def _cache(rows: pd.DataFrame) -> str:
    own = rows[~rows["volume"].fillna("").str.startswith("nbd")]  # the nbd engine has no page cache
    found = set(own["direct"].dropna().astype(bool))
    words = {True: "direct (no page cache)", False: "through the page cache"}
    return words[found.pop()] if len(found) == 1 else ("direct and buffered" if found else "")


def _volumes(rows: pd.DataFrame) -> str:
    """Return the volumes; a capacity tells that they are devices."""
    targets = [str(value) for value in rows["volume"].dropna().unique() if value != "unknown"]
    if not targets:
        return ""
    short = list(dict.fromkeys(_short(value) for value in targets))
    named = listed(short, noun="volumes", most=2)
    sizes = rows.drop_duplicates("volume")["volume_bytes"].dropna().unique()
    if rows["volume_bytes"].notna().all() and len(sizes) == 1:
        return f"device {named} of {format_size(float(sizes[0]))}"
    return f"on {named}"


def _short(target: str) -> str:
    """Return a target without the long path of a socket."""
    if target.startswith("nbd"):
        return "an NBD volume"
    return target if len(target) <= 40 else f"...{target[-37:]}"


def _lengths(rows: pd.DataFrame) -> str:
    lengths = rows["runtime_s"].dropna()
    if lengths.empty:
        return ""
    low, high = float(lengths.min()), float(lengths.max())
    if high - low <= max(0.05 * high, 0.5):
        return f"{format_duration(float(lengths.median()))} a Run"
    return f"{format_duration(low)} to {format_duration(high)} a Run"
