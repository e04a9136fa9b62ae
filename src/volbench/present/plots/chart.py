"""Charts of campaigns: frames and a kind become a plot description, its numbers or a sentence."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from volbench.errors import InputError
from volbench.model.frames.columns import FRAMES, ON_DEMAND
from volbench.present.plots.captions import caption
from volbench.present.plots.description import Plot
from volbench.present.plots.kind import Frames, Kind, Options
from volbench.present.plots.kinds import KINDS
from volbench.present.plots.panels import by_columns, compose, split

_DEFAULTS = Options()


def build_plot(
    kind: str | Kind,
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
    chosen, parts = _ready(kind, frames, by=by)
    plots = [
        (name, chosen.build(part, options)) for name, part in parts if not chosen.missing(part)
    ]
    plot = plots[0][1] if len(parts) == 1 else compose(plots)
    summaries = pd.concat([part["summary"] for _, part in parts], ignore_index=True)
    sentences = list(plot.caption)
    if empty := len(parts) - len(plots):
        sentences.append(f"{empty} further panels have nothing to show")
    shown = chosen.title if title is None else title
    heading = ", ".join(part for part in (shown, parts[0][0] * (len(parts) == 1)) if part)
    return replace(plot, name=chosen.name, title=heading, caption=caption(summaries, sentences))


def applicable(frames: Frames, *, among: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of the kinds that the frames have something for.

    Args:
        frames: the campaign's frames by name.
        among: names of kinds; all of them when None.
    """
    [(_, complete)] = split(_complete(frames), ())
    names = KINDS if among is None else among
    return tuple(name for name in names if not KINDS[name].missing(complete))


def describe(kind: str, frames: Frames) -> str:
    """Return the main numbers of a chart in one plain sentence, for people who can't see it.

    Raises:
        InputError: there is no such kind, or the campaign has nothing for it.
    """
    chosen, [(_, complete)] = _ready(kind, frames)
    return chosen.describe(complete)


def _ready(
    kind: str | Kind, frames: Frames, *, by: Sequence[str] = ()
) -> tuple[Kind, list[tuple[str, dict[str, pd.DataFrame]]]]:
    """Return the kind and the frames of each panel, once it is known that they go together."""
    chosen = _kind(kind) if isinstance(kind, str) else kind
    complete = _complete(frames)
    parts = split(complete, by_columns(complete["summary"], by))
    if not parts or all(chosen.missing(part) for _, part in parts):
        reason = chosen.missing(parts[0][1] if parts else complete)
        others = ", ".join(applicable(frames))
        raise InputError(
            f"the chart {chosen.name} can't be drawn: {reason}",
            hint=f"charts that can be drawn: {others}" if others else "run the campaign first",
        )
    return chosen, parts


def _kind(name: str) -> Kind:
    if name in KINDS:
        return KINDS[name]
    close = difflib.get_close_matches(name, KINDS, n=1)
    raise InputError(
        f"there is no chart {name!r}",
        hint=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(KINDS)}",
    )


def _complete(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return every frame of the contract; one that was not given has its columns and no rows."""
    empty = {
        name: pd.DataFrame(columns=[column.name for column in columns])
        for name, columns in {**FRAMES, **ON_DEMAND}.items()
        if name not in frames
    }
    return {**empty, **frames}
