"""Views of Runs in, rows of the verdicts frame out: steady or not, and what binds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from volbench.analyse.view import RunView


def verdict_rows(views: Iterable[RunView]) -> Sequence[Mapping[str, object]]:
    """Return a row for each finished Run and direction that has a series."""
    del views
    return ()
