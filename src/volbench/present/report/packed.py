"""What a page carries inside: texts and frames enter, compressed payloads and downloads leave.

A browser unpacks gzip by itself (Compression Standard, WHATWG, 2023), so that nothing is carried
twice and a campaign of hundreds of Runs is still a file that can be mailed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bokeh
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from volbench.present.export.frame_export import export_frame
from volbench.present.figures.save import svg_text
from volbench.present.style import styled

ORDER = (
    *("summary", "verdicts", "findings", "aggregate", "use", "percentiles"),
    *("histogram", "series", "device"),
)
"""Frames in the order in which they get room: the raw ones are large, and can be exported."""
ROOM_CHARS = 3_000_000
"""All downloads of a page together: what is shown needs its part of the ten megabytes too."""
SVG_CHARS = 150_000
"""A picture with more in it is smaller as pixels."""
PIXELS_PER_IN = 100
COLOURS = 96
"""Of a picture in pixels: flat colours and the soft edges of letters need no more."""


@dataclass(frozen=True)
class Download:
    """A table to take away.

    Attributes:
        name: of the frame.
        file: name of the file, ending in ``.csv``.
        rows: how many.
        link: data URI of the compressed CSV; empty when it is too large for the page.
    """

    name: str
    file: str
    rows: int
    link: str


def pack(text: str | bytes) -> str:
    """Return a text as base64 of gzip, the same for the same text."""
    content = text.encode() if isinstance(text, str) else text
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()


def digest(script: str) -> str:
    """Return the hash by which a browser recognises a script (CSP level 3, 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def bokeh_script() -> str:
    """Return the library that draws interactive charts, without what they don't need."""
    folder = Path(bokeh.__file__).parent / "server" / "static" / "js"
    return (folder / "bokeh.min.js").read_text(encoding="utf-8")


def downloads(
    frames: Mapping[str, pd.DataFrame], *, campaign: str, room_chars: int
) -> list[Download]:
    """Return every frame that has rows, packed while there is room.

    Args:
        frames: frame name to frame.
        campaign: begins the names of the files.
        room_chars: that all of them may take.
    """
    offered = []
    for name in (*ORDER, *sorted(frames.keys() - set(ORDER))):
        frame = frames.get(name)
        if frame is None or frame.empty:
            continue
        link = _link(name, frame) if frame.size < 2 * room_chars else ""
        if len(link) > room_chars:
            link = ""
        room_chars -= len(link)
        offered.append(Download(name, f"{file_name(campaign)}-{name}.csv", len(frame), link))
    return offered


def picture_of(figure: Figure) -> str:
    """Return a figure as a data URI: lines and letters, or pixels where that is smaller."""
    drawing = svg_text(figure)
    if len(drawing) <= SVG_CHARS:
        return "data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode()
    pixels = io.BytesIO()
    with styled():
        figure.savefig(pixels, format="png", dpi=PIXELS_PER_IN)
    sink = io.BytesIO()
    with Image.open(pixels) as image:
        image.convert("RGB").quantize(COLOURS).save(sink, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(sink.getvalue()).decode()


def file_name(name: str) -> str:
    """Return a name that is a harmless file name everywhere."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "campaign"


def _link(name: str, frame: pd.DataFrame) -> str:
    """Return a frame as a data URI of compressed CSV, every number exact."""
    stream = io.BytesIO()
    export_frame(frame, frame_name=name, format="csv", into=stream)
    return "data:application/gzip;base64," + pack(stream.getvalue())


__all__: Sequence[str] = [
    "ROOM_CHARS",
    "Download",
    "bokeh_script",
    "digest",
    "downloads",
    "file_name",
    "pack",
    "picture_of",
]
