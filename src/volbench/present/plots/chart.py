"""Charts of campaigns: a kind and frames become a plot description with title and caption.

The title says what is shown; the caption what all results have in common, and what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.job_frames import left_out, measured, plain_rows
from volbench.analyse.frames.workload_words import shared_limit
from volbench.errors import InputError
from volbench.model.frames.column_names import find_column
from volbench.model.frames.columns import FRAMES, ON_DEMAND
from volbench.present.factor_words import constants_words
from volbench.present.formatting import printable
from volbench.present.plots.charts.design_chart import response_kind
from volbench.present.plots.description import MAX_WIDTH_IN, Plot, frames_of
from volbench.present.plots.kinds import ALWAYS_READ, KINDS, OTHER_WORDS, Frames, Kind, Options
from volbench.present.plots.room import coloured, compared_of, fit
from volbench.present.plots.selection import in_last_bin, invalid_in, valid_frames
from volbench.units import counted_noun

_DEFAULTS = Options()
ALL_RESPONSES = "iops,p99"  # What `plot all` draws over the design
_PERCENTILE = re.compile(r"(?:c?lat_)?(p\d+)_s")  # Column of a chart
_INVALID = "Invalid results"
_MAX_INVALID = 3  # Up to how many jobs with invalid runs are named


def build_plot(
    kind: str | Kind[Any], frames: Frames, *, title: str | None = None, options: Options = _DEFAULTS
) -> Plot:
    """Return the description of a chart of one or several campaigns."""
    chosen = kind_of(kind) if isinstance(kind, str) else kind
    complete = _complete(frames)
    options = _with_columns(options, complete["summary"])
    _check_choice(chosen, options)
    plot = _built(chosen, complete, title, options)
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
    options: Options = _DEFAULTS,
) -> Iterator[Plot]:
    """Yield the descriptions of all charts that the frames have something for."""
    complete = _complete(frames)
    options = _with_columns(options, complete["summary"])
    for name in (ALL_RESPONSES, *KINDS) if kinds is None else kinds:
        kind = kind_of(name)
        plot = _built(kind, complete, title, options)
        if isinstance(plot, Plot):
            yield plot


def kind_of(name: str) -> Kind[Any]:
    """Return a kind by its name, or that of responses."""
    if name in KINDS:
        return KINDS[name]
    if name in OTHER_WORDS:
        raise InputError(f"there is no chart {name!r}", hint=f"draw volbench {OTHER_WORDS[name]}")
    return response_kind(name)


def _check_choice(kind: Kind[Any], options: Options) -> None:
    """Refuse the choices of a chart of responses for another kind, which has its own axes."""
    choice = options.choice
    if not kind.is_over_design and (choice.x or choice.panels or choice.view or choice.relative_to):
        raise InputError(
            f"the chart {kind.name} takes neither --x, --panels, --as nor --relative-to",
            hint=f"choose results with --where and colours with --by, or draw {ALL_RESPONSES}",
        )


def _built(kind: Kind[Any], every: Frames, title: str | None, options: Options) -> Plot | str:
    """Return the description of a chart, or why there is nothing to show."""
    frames = drawable(kind, {name: every[name] for name in {*ALWAYS_READ, *kind.frame_names}})
    sentences: tuple[str, ...] = ()
    if not kind.is_over_design:
        compared = "".join(options.choice.by[:1])
        whole = options.every() if options.every else every["summary"]
        compared = compared or compared_of(whole, is_by_design=kind.across == ())
        without = None if kind.across is None else [*filter(None, [compared]), *kind.across]
        frames, sentences = fit(coloured(frames, compared, whole), kind.room, without)
    data = _read_rows(kind, frames, options)
    if isinstance(data, str):
        is_invalid = not len(measured(frames["summary"])) and len(measured(every["summary"]))
        return "every result is invalid (see volbench check)" if is_invalid else data
    plot = kind.build(data)
    summary, shown = every["summary"], frames["summary"]
    invalid = _invalid(summary, every["findings"], shown)
    rates = measured(summary).loc[lambda rows: rows["direction"] != "sync"]
    notes = [
        *plot.caption,
        *sentences,
        "" if kind.is_over_design else constants_words(design_of(plain_rows(rates))),
        "" if "series" in kind.frame_names else in_last_bin(shown, _percentiles(plot)),
        invalid,
        *shared_limit(plain_rows(every["findings"]), {*shown["run"]}),
        *(_not_shown(state, count) for state, count in left_out(summary).items()),
    ]
    own = plot.title or kind.title
    described = _described(kind, frames, data, options)
    mark = "Invalid, see below: " if invalid.startswith(f"{_INVALID} (") else ""
    return replace(
        plot,
        name=kind.name,
        title=title if title is not None else own,
        answer=mark + (plot.answer or described),
        description=described,
        width_in=min(plot.width_in, MAX_WIDTH_IN),
        caption=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _with_columns(options: Options, summary: pd.DataFrame) -> Options:
    """Return options whose columns have their full names."""
    choice, known = options.choice, list(summary.columns)
    chosen = replace(
        choice,
        x=choice.x and find_column(choice.x, known),
        by=tuple(find_column(name, known) for name in choice.by),
        panels=tuple(find_column(name, known) for name in choice.panels),
    )
    return replace(options, choice=chosen)


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


def _complete(frames: Frames) -> dict[str, pd.DataFrame]:
    """Return every frame of the contract; one that was not given has its columns and no rows."""
    empty = {
        name: pd.DataFrame(columns=[column.name for column in columns])
        for name, columns in {**FRAMES, **ON_DEMAND}.items()
        if name not in frames
    }
    return {**empty, **frames}


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
    return f"{_INVALID}{'' if is_shown else ', not shown'} (see volbench check): {count}{named}"


def _not_shown(state: str, count: int) -> str:
    runs = counted_noun(count, "run")
    if state == "failed":
        return f"{runs} failed and {'is' if count == 1 else 'are'} not shown"
    return f"{runs} {'was' if count == 1 else 'were'} {state} and not shown"
