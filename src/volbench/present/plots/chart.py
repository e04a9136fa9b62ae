"""Charts of campaigns: a kind and frames become a plot description with title and caption."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES, ON_DEMAND
from volbench.present.plots.captions import caption, pooled
from volbench.present.plots.description import Plot
from volbench.present.plots.kind import Frames, Kind, Options, missing_results
from volbench.present.plots.kinds import KINDS
from volbench.present.plots.panels import by_columns, compose, split

_DEFAULTS = Options()


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
        kind: a name in `KINDS`, or a kind of one's own.
        frames: the campaign's frames by name, with the columns of the contract.
        title: instead of the kind's own.
        by: one or two columns or labels: values of the first have a colour each, and what is equal
            in it is pooled; each value of the second has a panel.
        options: for the kinds that take some.

    Raises:
        InputError: there is no such kind or column, or the campaign has nothing for it.
    """
    chosen = _kind(kind) if isinstance(kind, str) else kind
    complete = _complete(frames)
    plot = _built(chosen, split(complete, by_columns(complete["summary"], by)), title, options)
    if isinstance(plot, Plot):
        return plot
    others = ", ".join(other.name for other in build_plots(frames))
    raise InputError(
        f"the chart {chosen.name} can't be drawn: {plot}",
        hint=f"charts that can be drawn: {others}" if others else "run the campaign first",
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
        frames: as for `build_plot`.
        kinds: names; all of them when None.
        title: as for `build_plot`, like the others.
        by: same.
        options: same.

    Raises:
        InputError: there is no such column.
    """
    complete = _complete(frames)
    parts = split(complete, by_columns(complete["summary"], by))
    for name in KINDS if kinds is None else kinds:
        plot = _built(_kind(name), parts, title, options)
        if isinstance(plot, Plot):
            yield plot


def _built(
    kind: Kind[Any], parts: Sequence[tuple[str, Frames]], title: str | None, options: Options
) -> Plot | str:
    """Return the description of all parts, or why none of them has anything to show."""
    read = [(name, _read(kind, frames, options)) for name, frames in parts]
    plots = [
        (name, replace(kind.build(data), description=kind.describe(data)))
        for name, data in read
        if not isinstance(data, str)
    ]
    if not plots:
        return str(read[0][1]) if read else "no run of the campaign has ended yet"
    plot = compose(plots) if len(parts) > 1 else plots[0][1]
    summary = pd.concat([frames["summary"] for _, frames in parts], ignore_index=True)
    counted = [pooled(frames["summary"]) for _, frames in parts if kind.is_pooled]
    empty = len(parts) - len(plots)
    others = f"{empty} further panels have nothing to show" if empty else ""
    named = (kind.title if title is None else title, parts[0][0] if len(parts) == 1 else "")
    return replace(
        plot,
        name=kind.name,
        title=", ".join(text for text in named if text),
        caption=caption(summary, [*counted, *plot.caption, others]),
    )


def _read(kind: Kind[Any], frames: Frames, options: Options) -> object:
    reason = missing_results(frames) if kind.needs_results else ""
    return reason or kind.read(frames, options)


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
