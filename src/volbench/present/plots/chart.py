"""Charts of campaigns: a kind and frames become a plot description with title and caption.

A title such as ``randwrite 4k: IOPS by queue depth and numjobs, /dev/nvme0n1`` is of the measured
runs; it never says more than all of them have in common, so that it holds for any part of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from volbench.analyse.frames.job_frames import KEY, OPTIONS, key_of, left_out, measured
from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES, MIXED, ON_DEMAND
from volbench.present.formatting import printable, short_target
from volbench.present.plots.description import Plot, frames_of
from volbench.present.plots.kinds import ALWAYS_READ, KINDS, PER_JOB, Frames, Kind, Options
from volbench.present.plots.labels import OPTION_WORDS, PALETTE_SIZE, option_named
from volbench.present.plots.panels import by_columns, compose, crowded_parts, split
from volbench.present.plots.selection import REST, in_last_bin, invalid_in, valid_frames
from volbench.units import counted_noun, format_duration, format_size

_DEFAULTS = Options()
_PERCENTILE = re.compile(r"(?:lat_)?(p\d+)_s")  # Column of a chart
_NOUNS = {
    "campaign": "campaigns",
    "profile": "profiles",
    "host": "hosts",
    "volume": "volumes",
    "client": "clients",
    "repeat": "repeats",
}
_MAX_INVALID = 3  # Up to how many jobs with invalid runs are named
_MAX_CAMPAIGNS = 6  # Up to how many campaigns are named
# Characters from which on a title loses its least important parts. volbench's own choice.
MAX_LENGTH = 96
_MAX_OPTIONS = 2


def build_plot(
    kind: str | Kind[Any],
    frames: Frames,
    *,
    title: str | None = None,
    by: Sequence[str] = (),
    options: Options = _DEFAULTS,
) -> Plot:
    """Return the description of a chart of one or several campaigns.

    Args:
        by: one or two columns or labels: values of the first have a colour each, and what is equal
            in it is pooled; each value of the second has a panel.
    """
    chosen = _kind(kind) if isinstance(kind, str) else kind
    complete = _complete(frames)
    parts = split(complete, by_columns(complete["summary"], by))
    plot = _built(chosen, parts, title, options)
    if isinstance(plot, Plot):
        return plot
    is_measured = not _missing_results(complete)
    raise InputError(
        f"the chart {chosen.name} cannot be drawn: {plot}",
        hint="volbench plot all draws every chart that these results allow" if is_measured else "",
    )


def build_plots(
    frames: Frames,
    kinds: Iterable[str] | None = None,
    *,
    title: str | None = None,
    by: Sequence[str] = (),
    options: Options = _DEFAULTS,
) -> Iterator[Plot]:
    """Yield the descriptions of all charts that the frames have something for.

    Args:
        kinds: names; all of them when None.
    """
    complete = _complete(frames)
    parts = split(complete, by_columns(complete["summary"], by))
    for name in KINDS if kinds is None else kinds:
        plot = _built(_kind(name), parts, title, options)
        if isinstance(plot, Plot):
            yield plot


def _built(
    kind: Kind[Any],
    parts: Sequence[tuple[str, Frames]],
    title: str | None,
    options: Options,
) -> Plot | str:
    """Return the description of all parts, or why none of them has anything to show."""
    every, parts = parts, [(name, drawable(kind, frames)) for name, frames in parts]
    plots, reason = _drawn(kind, parts, options)
    if not plots:
        left = any(len(measured(frames["summary"])) for _, frames in parts)
        is_invalid = not left and any(len(measured(frames["summary"])) for _, frames in every)
        return "every result is invalid (see volbench check)" if is_invalid else reason
    plot = compose(plots) if len(parts) > 1 else plots[0][1]
    if kind.splits and len(parts) == 1 and any(series.key == REST for series in plot.series):
        plot = _apart(kind, plot, parts[0][1], options)
    summary, findings = (
        pd.concat([frames[name] for _, frames in every], ignore_index=True) for name in ALWAYS_READ
    )
    shown = pd.concat([frames["summary"] for _, frames in parts], ignore_index=True)
    counted = [pooled(frames["summary"]) for _, frames in parts if kind.is_pooled]
    empty = len(parts) - len(plots)
    others = f"{empty} more panels have no data" if empty else ""
    named = (
        chart_title(kind, summary) if title is None else title,
        parts[0][0] if len(parts) == 1 else "",
    )
    return replace(
        plot,
        name=kind.name,
        title=", ".join(text for text in named if text),
        caption=caption(
            summary,
            [
                *counted,
                *plot.caption,
                others,
                "" if "series" in kind.frame_names else in_last_bin(shown, _percentiles(plot)),
                _invalid(summary, findings, shown),
            ],
            drawn=_of_marks(plot, shown),
        ),
    )


def _percentiles(plot: Plot) -> set[str]:
    """Return the percentiles of results among the columns of the marks, such as ``p99``."""
    columns = {str(name) for frame in frames_of(plot) for name in frame}
    return {match[1] for name in columns if (match := _PERCENTILE.fullmatch(name))}


def drawable(kind: Kind[Any], frames: Frames) -> Frames:
    """Return the frames that a chart may draw: no invalid result while there are others."""
    if kind.draws_invalid:
        return frames
    valid = valid_frames(frames)
    return valid if kind.concludes or len(measured(valid["summary"])) else frames


def _of_marks(plot: Plot, summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose job has a mark; all of them where marks do not name their jobs."""
    if any(series.key == REST for series in plot.series):
        return summary
    is_drawn = np.zeros(len(summary), dtype=bool)
    for frame in frames_of(plot):
        key = [name for name in key_of(summary) if name in frame]
        if "job" in key:
            of_rows, of_marks = (
                pd.MultiIndex.from_frame(each[key].astype("str")) for each in (summary, frame)
            )
            is_drawn |= of_rows.isin(of_marks)
    kept = summary[is_drawn]
    return kept if len(measured(kept)) else summary


def _apart(kind: Kind[Any], whole: Plot, frames: Frames, options: Options) -> Plot:
    """Return a plot of too many lines for one panel in several, with all of its numbers."""
    parts, note = crowded_parts(whole, frames, kind.splits, options)
    fewer = replace(options, lines=min(options.lines, PALETTE_SIZE // max(1, len(parts))))
    plots, _ = _drawn(kind, parts, fewer, is_described=False)
    if len(plots) < 2:
        return whole
    plot = compose(plots)
    return replace(
        plot,
        rows=whole.rows,
        caption=(*plot.caption, note),
        description=whole.description,
    )


def _drawn(
    kind: Kind[Any],
    parts: Sequence[tuple[str, Frames]],
    options: Options,
    *,
    is_described: bool = True,
) -> tuple[list[tuple[str, Plot]], str]:
    """Return the plots of the parts that have anything to show, or why none has."""
    plots, reasons = [], []
    for name, frames in parts:
        data = _read_rows(kind, frames, options)
        if isinstance(data, str):
            reasons.append(data)
            continue
        plot = kind.build(data)
        words = _described(kind, frames, data, options) if is_described else ""
        plots.append((name, replace(plot, description=words)))
    return plots, "" if plots else next(iter(reasons), "no measured run has a result")


def _described(kind: Kind[Any], frames: Frames, data: object, options: Options) -> str:
    """Return the main numbers of a chart in a sentence, none of them of an invalid result."""
    valid = valid_frames(frames)
    if valid is not frames:
        data = _read_rows(kind, valid, options)
    if isinstance(data, str):
        runs = measured(frames["summary"])["run"].nunique()
        if runs == 1:
            return "The run has no valid result to quote."
        return f"None of {counted_noun(runs, 'run')} has a valid result to quote."
    return kind.describe(data)


def _read_rows(kind: Kind[Any], frames: Frames, options: Options) -> object:
    reason = _missing_results(frames) if kind.needs_results else ""
    return reason or kind.read(frames, options)


def _missing_results(frames: Frames) -> str:
    """Return the reason why nothing can be drawn; empty if a measured run finished."""
    summary = frames["summary"]
    if len(measured(summary)):
        return ""
    states = left_out(summary)
    if not states:
        return "no measured run has a result"
    return "no measured run finished: " + ", ".join(f"{n} {state}" for state, n in states.items())


def _kind(name: str) -> Kind[Any]:
    if name in KINDS:
        return KINDS[name]
    close = difflib.get_close_matches(name, KINDS, n=1)
    raise InputError(
        f"there is no chart {name!r}",
        hint=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KINDS)}",
    )


def _complete(frames: Frames) -> dict[str, pd.DataFrame]:
    """Return every frame of the contract; one that was not given has its columns and no rows."""
    empty = {
        name: pd.DataFrame(columns=[column.name for column in columns])
        for name, columns in {**FRAMES, **ON_DEMAND}.items()
        if name not in frames
    }
    return {**empty, **frames}


def caption(
    summary: pd.DataFrame, sentences: Sequence[str], *, drawn: pd.DataFrame | None = None
) -> tuple[str, ...]:
    """Return the sentences of a caption: campaigns and setting, those given, runs left out.

    Args:
        drawn: rows that the setting is of; None for all.
    """
    campaigns = [printable(str(name)) for name in summary["campaign"].dropna().unique()]
    names = ", ".join(campaigns[:_MAX_CAMPAIGNS])
    if len(campaigns) > _MAX_CAMPAIGNS:
        names += f" and {len(campaigns) - _MAX_CAMPAIGNS} more"
    first = f"Campaign{'s' if len(campaigns) > 1 else ''} {names}"
    parts = [first, setting(summary if drawn is None else drawn), *sentences]
    parts += [_not_shown(state, count) for state, count in left_out(summary).items()]
    return tuple(dict.fromkeys(part for part in parts if part))


def _invalid(summary: pd.DataFrame, findings: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Return how many measured runs have an invalid number, and of which jobs; "" for none."""
    rows = measured(summary)
    invalid_rows = rows[rows["run"].isin(invalid_in(findings))]
    if invalid_rows.empty:
        return ""
    is_shown = invalid_rows["run"].isin(shown["run"]).any()
    jobs = [printable(str(job)) for job in invalid_rows["job"].dropna().unique()]
    named = f" ({', '.join(jobs)})" if len(jobs) <= _MAX_INVALID else ""
    count = f"{invalid_rows['run'].nunique()} of {counted_noun(rows['run'].nunique(), 'run')}"
    return (
        f"Invalid results{'' if is_shown else ', not shown'} (see volbench check): {count}{named}"
    )


def _not_shown(state: str, count: int) -> str:
    runs = counted_noun(count, "run")
    if state == "failed":
        return f"{runs} failed and {'is' if count == 1 else 'are'} not shown"
    return f"{runs} {'was' if count == 1 else 'were'} {state} and not shown"


def setting(summary: pd.DataFrame) -> str:
    """Return the setting shared by the measured runs, such as ``Block 4k, queue depth 16, direct``.

    A result cannot be interpreted without cache, queue depth, block size, volume and runtime.
    What differs is given as a range, or left to the labels if it takes too many words.
    """
    rows = measured(summary)
    rows = rows[rows["direction"] != "sync"]
    parts = [_blocks(rows), _depths(rows), _cache(rows), _volumes(rows), _runtimes(rows)]
    joined = ", ".join(part for part in parts if part)
    return joined[:1].upper() + joined[1:]


def pooled(summary: pd.DataFrame) -> str:
    """Return the runs pooled in one mark, such as ``Pooled: 3 repeats``; "" for a single run."""
    rows = measured(summary)
    if rows.empty:
        return ""
    groups = rows.groupby(key_of(rows, KEY), sort=False, dropna=False)
    parts = []
    for column, noun in _NOUNS.items():
        if column not in rows or column in key_of(rows, KEY):
            continue
        counts = groups[column].nunique()
        most, fewest = int(counts.max()), int(max(1, counts.min()))
        if most > 1:
            parts.append(f"{most} {noun}" if most == fewest else f"{fewest} to {most} {noun}")
    return f"Pooled: {', '.join(parts)}" if parts else ""


def _blocks(rows: pd.DataFrame) -> str:
    bounds = rows.reindex(columns=["block_bytes", "block_min_bytes", "block_max_bytes"])
    if not bounds.notna().any(axis=None):
        return ""
    low, high = (format_size(float(bound)) for bound in (bounds.min().min(), bounds.max().max()))
    words = f"block size {low}" if low == high else f"block sizes {low} to {high}"
    return words + _where_not_mixed(rows, bounds.isna().all(axis=1))


def _depths(rows: pd.DataFrame) -> str:
    depths = sorted(int(depth) for depth in rows["iodepth"].dropna().unique())
    if not depths:
        return ""
    words = f"queue depth {depths[0]}" + (f" to {depths[-1]}" if len(depths) > 1 else "")
    return words + _where_not_mixed(rows, rows["iodepth"].isna())


def _where_not_mixed(rows: pd.DataFrame, is_unknown: pd.Series) -> str:
    """Return that an option is not that of all rows: fio merged unlike jobs, or it is unknown."""
    is_merged = is_unknown & rows["rw"].eq(MIXED).fillna(value=False)
    return (" or mixed" if is_merged.any() else "") + _where_known(is_unknown & ~is_merged)


def _cache(rows: pd.DataFrame) -> str:
    cached = rows[
        ~rows["volume"].fillna("").str.startswith("nbd")
    ]  # the nbd engine has no page cache
    direct = set(cached["direct"].dropna().astype(bool))
    if not direct:
        return ""
    words = "direct (no page cache)" if True in direct else "through the page cache"
    if len(direct) > 1:
        words = "direct and buffered"
    return words + _where_known(cached["direct"].isna())


def _where_known(is_unknown: pd.Series) -> str:
    """Return that a statement is not about all rows, or nothing."""
    return " where it is known" if is_unknown.any() else ""


def _volumes(rows: pd.DataFrame) -> str:
    """Return the volumes; a capacity says that they are devices."""
    targets = [str(value) for value in rows["volume"].dropna().unique() if value != "unknown"]
    if not targets:
        return ""
    short = list(dict.fromkeys(short_target(value) for value in targets))
    named = ", ".join(map(printable, short)) if len(short) <= 2 else f"{len(short)} volumes"
    sizes = rows.drop_duplicates("volume")["volume_bytes"].dropna().unique()
    if rows["volume_bytes"].notna().all() and len(sizes) == 1:
        return f"device {named} of {format_size(float(sizes[0]))}"
    return f"on {named}" + _where_known(rows["volume"].isin(["unknown"]) | rows["volume"].isna())


def _runtimes(rows: pd.DataFrame) -> str:
    runtimes = rows["runtime_s"].dropna()
    if runtimes.empty:
        return ""
    low, high = float(runtimes.min()), float(runtimes.max())
    if high - low <= max(0.05 * high, 0.5):
        return f"{format_duration(float(runtimes.median()))} per run"
    return f"{format_duration(low)} to {format_duration(high)} per run"


def chart_title(kind: Kind[Any], summary: pd.DataFrame) -> str:
    """Return the title of a chart."""
    rows = measured(summary) if kind.needs_results else summary.iloc[:0]
    rows = rows[rows["direction"] != "sync"]
    quantity = _quantity(kind, rows)
    workload = _workload(rows)
    place = _common_place(rows)
    shorter = ((workload, place), (workload[:1], place), (workload[:1], ""), ((), place))
    titles = [_joined_title(workload_words, quantity, where) for workload_words, where in shorter]
    return next((title for title in titles if len(title) <= MAX_LENGTH), quantity)


def _joined_title(workload: tuple[str, ...], quantity: str, place: str) -> str:
    ending = f"{quantity}, {place}" if place else quantity
    if not workload:
        return ending
    is_word = ending[1:2].islower()
    return f"{', '.join(workload)}: {ending[0].lower() if is_word else ending[0]}{ending[1:]}"


def _quantity(kind: Kind[Any], rows: pd.DataFrame) -> str:
    """Return the quantity, and of a chart of jobs the options that they differ in."""
    if not kind.by_options:
        return kind.title
    options = ("rw", *OPTIONS) if kind.by_options == PER_JOB else OPTIONS
    differing = [OPTION_WORDS[name] for name in options if len(rows[name].unique()) > 1]
    if not 0 < len(differing) <= _MAX_OPTIONS:
        return f"{kind.title} {kind.by_options}"
    return f"{kind.title} by {' and '.join(differing)}"


def _workload(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the workload that all rows have: pattern and block size, queue depth, jobs."""
    pattern, block = _common_text(rows, "rw"), _common_number(rows, "block_bytes")
    if block:
        pattern = f"{pattern} {format_size(block)}" if pattern else f"{format_size(block)} blocks"
    if not pattern:
        return ()
    depth, jobs = _common_number(rows, "iodepth"), _common_number(rows, "numjobs")
    options = [option_named("iodepth", depth)] if depth else []
    options += [option_named("numjobs", jobs)] if jobs > 1 else []
    return (pattern, *options)


def _common_place(rows: pd.DataFrame) -> str:
    """Return the volume that all rows have, and the host if it is another machine."""
    volume, host = _common_text(rows, "volume"), _common_text(rows, "host")
    named = "" if volume == "unknown" else short_target(volume)
    away = "" if host in {"local", "unknown"} else host
    return f"{named} on {away}" if named and away else named or away


def _common_text(rows: pd.DataFrame, column: str) -> str:
    """Return the text that all rows have; empty if they differ or it is unknown."""
    values = rows[column].unique()
    return printable(str(values[0])) if len(values) == 1 and pd.notna(values[0]) else ""


def _common_number(rows: pd.DataFrame, column: str) -> float:
    """Return the number that all rows have; 0 if they differ or it is unknown."""
    values = rows[column].unique()
    return float(values[0]) if len(values) == 1 and pd.notna(values[0]) else 0.0
