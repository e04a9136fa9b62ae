"""Light, dark and print: a drawn Figure enters and changes its colours, nothing else.

Charts are drawn in the light colours of `volbench.present.style`; another theme exchanges each
colour for its counterpart, so that no chart has to know of themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from volbench.errors import InputError
from volbench.present.style import BLACK, GREY, PALE, PALETTE

_DARK = {
    "#ffffff": "#15181d",
    "#000000": "#e8e8e8",
    BLACK.lower(): "#e8e8e8",
    GREY.lower(): "#a9adb3",
    PALE.lower(): "#363b43",
    "#f4f4f4": "#1e2228",
    "#f3f3f3": "#1e2228",
    "#eeeeee": "#252a31",
    "#cccccc": "#3c424b",
    "#0072b2": "#4aa8e0",  # the blue of the palette is too dark on black
    "#009e73": "#2cc295",
}
_PRINT = {
    "#000000": "#000000",
    BLACK.lower(): "#000000",
    GREY.lower(): "#333333",
    **dict(
        zip(
            (colour.lower() for colour in PALETTE),
            ("#303030", "#8c8c8c", "#5e5e5e", "#b4b4b4", "#747474", "#cecece", "#000000"),
            strict=True,
        )
    ),
}
THEMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"light": {}, "dark": _DARK, "print": _PRINT}
)
"""Theme to the counterpart of each colour; colours without one stay."""
_HATCHES = MappingProxyType(
    {"#d55e00": "////", "#009e73": "....", "#cc79a7": "xxxx", "#e69f00": "----"}
)
"""Beside the grey, so that print tells bars apart."""


def apply_theme(figure: Figure, theme: str) -> None:
    """Exchange the colours of a figure for those of a theme.

    Raises:
        InputError: there is no such theme.
    """
    if theme not in THEMES:
        raise InputError(f"there is no theme {theme!r}", hint=f"choose one of {', '.join(THEMES)}")
    counterparts = THEMES[theme]
    if not counterparts:
        return
    for artist in [figure, *figure.findobj(include_self=False)]:
        if theme == "print":
            _hatch(artist)
        _exchange(artist, counterparts)
        if theme == "print" and isinstance(artist, (AxesImage, Collection)):
            _grey_map(artist)


def _exchange(artist: Artist, counterparts: Mapping[str, str]) -> None:
    """Exchange every colour that an artist has."""
    if isinstance(artist, Collection):
        artist.set_facecolor(_all(artist.get_facecolor(), counterparts))
        artist.set_edgecolor(_all(artist.get_edgecolor(), counterparts))
        return
    names: tuple[str, ...] = ()
    if isinstance(artist, Line2D):
        names = ("color", "markerfacecolor", "markeredgecolor")
    elif isinstance(artist, Text):
        names = ("color",)
        box = artist.get_bbox_patch()  # which is no child of the text
        if box is not None:
            _exchange(box, counterparts)
    elif isinstance(artist, Patch):
        names = ("edgecolor", "facecolor")
    for name in names:
        value = getattr(artist, f"get_{name}")()
        if isinstance(value, str) and value in {"none", "auto"}:
            continue
        getattr(artist, f"set_{name}")(_one(value, counterparts))


def _one(colour: Any, counterparts: Mapping[str, str]) -> tuple[float, ...]:  # noqa: ANN401 - any form of colour that matplotlib has
    """Return the counterpart with the transparency that the colour had."""
    told = to_rgba(colour)
    other = counterparts.get(to_hex(told))
    return told if other is None else (*to_rgba(other)[:3], told[3])


def _all(colours: Iterable[Any], counterparts: Mapping[str, str]) -> Any:  # noqa: ANN401 - rows of RGBA, or none
    found = [
        _one(colour, counterparts) for colour in np.atleast_2d(np.asarray(colours)) if len(colour)
    ]
    return found or "none"


def _hatch(artist: Artist) -> None:
    """Give a filled patch the hatch of its colour."""
    if isinstance(artist, Patch) and artist.get_fill():
        hatch = _HATCHES.get(to_hex(artist.get_facecolor()))
        if hatch:
            artist.set_hatch(hatch)
            artist.set_edgecolor("white")
            artist.set_hatchcolor("white")
            artist.set_linewidth(0.0)


def _grey_map(artist: AxesImage | Collection) -> None:
    if artist.get_array() is not None:
        artist.set_cmap("Greys")
