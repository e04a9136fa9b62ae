"""Plot description as a page carries it: compressed, beside what is known without drawing it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from volbench.present.formatting import printable
from volbench.present.plots.description import Plot
from volbench.present.plots.json_form import json_form
from volbench.present.renderers.interactive.embedded_data import pack

_PX_PER_IN = 96
_LABELS_PX = 64


@dataclass(frozen=True)
class EmbeddedPlot:
    """A chart that the page draws.

    Attributes:
        title: its heading.
        caption: in sentences.
        payload: base64 of the compressed JSON form.
        height_px: room that it takes, so that drawing it moves nothing.
    """

    title: str
    caption: str
    payload: str
    height_px: int


def embed(plot: Plot) -> EmbeddedPlot:
    """Return a plot as a page carries it."""
    sentences = (part.rstrip(".") + "." for part in plot.caption if part)
    text = json.dumps(json_form(plot), separators=(",", ":"), ensure_ascii=False)
    heights = (max(40, height * _PX_PER_IN) + _LABELS_PX for height in plot.heights)
    return EmbeddedPlot(
        title=printable(plot.title),
        caption=printable(" ".join(sentences)),
        payload=pack(text),
        height_px=round(sum(heights)) + _LABELS_PX,
    )


def is_interactive(plot: Plot) -> bool:
    """Return whether the page can draw a plot; towers need matplotlib."""
    return all(panel.z is None for panel in plot.panels)
