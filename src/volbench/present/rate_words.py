"""Sentences on the highest rate within a latency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from volbench.analyse.compare.rate_search import FoundRate, Level, asked_of, searches_in
from volbench.analyse.frames.design import ASKED, Design
from volbench.model.frames.expectation import parse_expectation
from volbench.present.factor_words import cell_words, listed, value_names
from volbench.units import counted_noun, format_count, format_latency


def rate_sentences(design: Design) -> Iterator[str]:
    """Yield a sentence for each search among the results of a design."""
    searches = searches_in(design.rows)
    for found, name in zip(searches, search_names(design, searches), strict=True):
        yield f"{name}: {rate_words(found, bound_shortage(design.rows, found))}."


def bound_shortage(results: Sequence[Mapping[str, object]], found: FoundRate) -> str:
    """Return why the I/Os at the ends of a search are too few for a bound; empty if enough."""
    import pandas as pd  # noqa: PLC0415 - slow to import, and few results are of searches

    from volbench.analyse.compare.expected_bounds import too_few  # noqa: PLC0415 - the same

    ends = [level.asked for level in (found.search.kept, found.search.missed) if level]
    rows = [row for row in map(results.__getitem__, found.places) if asked_of(row) in ends]
    columns = [parse_expectation(text).column for text in found.within]
    return next(filter(None, (too_few(name, pd.DataFrame(rows)) for name in columns if rows)), "")


def search_names(design: Design, searches: Sequence[FoundRate]) -> list[str]:
    """Return what is compared and the workload of each search.

    Clients and directions that one search adds up are not named.
    """
    compared = design.by_column.get(design.compared)
    short = value_names(compared.column, compared.values) if compared else {}
    cells = {place: cell for cell in design.cells for place in cell.places}
    names = []
    for found in searches:
        cell, *others = [cells[place] for place in found.places]
        added_up = {
            column
            for column in (design.compared, "client", "host", "direction")
            if any(other.values.get(column) != cell.values.get(column) for other in others)
        }
        words = cell_words(design, cell, without=(design.compared, *added_up, *ASKED))
        is_named = compared and compared.column not in added_up
        place = short[cell.values[compared.column]] if compared and is_named else ""
        names.append(", ".join(filter(None, [place, words])))
    return names


def rate_words(found: FoundRate, shortage: str = "") -> str:
    """Return the highest rate that kept the bounds, and what the rates above it did."""
    search, bounds = found.search, listed(found.within)
    kept, missed, free = search.kept, search.missed, search.free
    ends = [*dict.fromkeys(_level_words(found, level) for level in (missed, free) if level)]
    if search.is_contradictory or shortage:
        lead = f"undecided whether a rate keeps {bounds}"
        if kept is not None:
            lead = f"undecided: {_rate_words(kept)} kept {bounds} {_runs_words(kept)}"
        return "; ".join([lead, *ends, shortage or "a longer --runtime may decide it"])
    if kept is None:
        return "; ".join([f"no rate was found that keeps {bounds}", *ends])
    lead = f"{_rate_words(kept)} within {bounds}"
    if missed is None:
        return f"{lead}, without a limit ({_values_words(found, kept)})"
    is_over = search.next_rate() is None
    lead = f"{lead}, {_runs_words(kept)}" if is_over else f"at least {lead}, not confirmed"
    more = [] if is_over else ["volbench resume runs the trials that are left, if any"]
    return "; ".join([lead, *ends, *more])


def _rate_words(level: Level) -> str:
    return f"{format_count(level.rate)} IOPS"


def _runs_words(level: Level) -> str:
    return f"in {level.kept} of {counted_noun(len(level.trials), 'run')}"


def _level_words(found: FoundRate, level: Level) -> str:
    values = _values_words(found, level)
    if math.isinf(level.asked):
        return f"without a limit {_rate_words(level)} with {values}"
    asked = f"asked for {format_count(level.asked)} IOPS"
    if level.kept:
        return f"{asked}, kept only {_runs_words(level)}"
    return f"{asked}, {values}" if level.is_held else f"{asked}, {_rate_words(level)} with {values}"


def _values_words(found: FoundRate, level: Level) -> str:
    names = [parse_expectation(text).metric for text in found.within]
    return listed([f"{name} {format_latency(level.value(at))}" for at, name in enumerate(names)])
