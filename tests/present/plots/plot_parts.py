"""Parts of a plot description by their type, for tests that assert what a chart shows."""

from typing import TypeVar

from volbench.present.plots.description import Panel, Plot
from volbench.present.plots.marks import Mark, ReferenceLine, Texts

MarkType = TypeVar("MarkType")


def all_marks(panel: Panel, kind: type[MarkType]) -> list[MarkType]:
    """Return the marks of a type, in the order of drawing."""
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def the_mark(panel: Panel, kind: type[MarkType]) -> MarkType:
    """Return the only mark of a type."""
    [mark] = all_marks(panel, kind)
    return mark


def column(mark: Mark, name: str) -> list[object]:
    """Return a column of a mark's data as plain values."""
    return list(mark.data[name].tolist())


def written(panel: Panel) -> list[str]:
    """Return the texts of a panel and the names of its reference lines."""
    texts = [str(text) for mark in all_marks(panel, Texts) for text in mark.data[mark.text]]
    return [*texts, *(line.name for line in all_marks(panel, ReferenceLine) if line.name)]


def caption_of(plot: Plot) -> str:
    """Return the caption as one text."""
    return ". ".join(plot.caption)
