"""Light, dark and print: the colour of each role that plot descriptions name.

The palette is that of Okabe and Ito (Color Universal Design, 2008), which people with any of the
common colour deficiencies can distinguish; yellow fades on white and is in the dark theme only, in
place of a second blue. Seven darker colours follow (after Paul Tol's "muted" scheme, 2021), then
both halves mixed with grey.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from volbench.errors import InputError

_ROLES = ("paper", "ink", "muted", "pale", "shade", "quiet", "hatch", "rest")
_LIGHT = ("#ffffff", "#222222", "#666666", "#dddddd", "#eeeeee", "#f4f4f4", "#cccccc", "#cccccc")
_DARK = ("#15181d", "#e8e8e8", "#a9adb3", "#363b43", "#252a31", "#1e2228", "#3c424b", "#666d78")
_PRINT = ("#ffffff", "#000000", "#333333", "#dddddd", "#eeeeee", "#f4f4f4", "#cccccc", "#cccccc")
_FURTHER = ("#882255", "#117733", "#332288", "#8c6d31", "#cc6677", "#7f9f3f", "#7a7a7a")
_OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222")
_ON_BLACK = ("#4aa8e0", "#d55e00", "#2cc295", "#cc79a7", "#e69f00", "#f0e442", "#e8e8e8")
_GREYS = ("#303030", "#8c8c8c", "#5e5e5e", "#b4b4b4", "#747474", "#cecece", "#000000")
_FURTHER_ON_BLACK = ("#c94f8c", "#3fae5d", "#8a7ff0", "#b8923f", "#e08a97", "#a5c85a", "#9a9a9a")
_FURTHER_HATCHES = ("\\\\\\\\", "++++", "oooo")  # Of each further seven greys
# Direction of I/O to the place of its colour in the palette
_MEANINGS = {"read": 0, "write": 1, "trim": 2, "sync": 3, "mixed": 6, "other": 5}
# Ramps from pale to dark, between whose colours there are equal steps (ColorBrewer 2.0: Blues,
# Oranges, Purples and Greys of nine classes)
RAMPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "blue": (
            *("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6"),
            *("#4292c6", "#2171b5", "#08519c", "#08306b"),
        ),
        "orange": (
            *("#fff5eb", "#fee6ce", "#fdd0a2", "#fdae6b", "#fd8d3c"),
            *("#f16913", "#d94801", "#a63603", "#7f2704"),
        ),
        "purple": (
            *("#fcfbfd", "#efedf5", "#dadaeb", "#bcbddc", "#9e9ac8"),
            *("#807dba", "#6a51a3", "#54278f", "#3f007d"),
        ),
        "grey": (
            *("#ffffff", "#f0f0f0", "#d9d9d9", "#bdbdbd", "#969696"),
            *("#737373", "#525252", "#252525", "#000000"),
        ),
    }
)


@dataclass(frozen=True)
class Theme:
    """Colours of roles."""

    colours: Mapping[str, str]  # role to ``#rrggbb``
    # role to the pattern that sets its areas apart where there are no colours
    hatches: Mapping[str, str] = field(default_factory=dict)
    is_grey: bool = False  # colour ramps are grey


def _colours(roles: tuple[str, ...], palette: tuple[str, ...]) -> Mapping[str, str]:
    palette = (*palette, *(_half_grey(colour) for colour in palette))
    places = {f"palette-{place}": colour for place, colour in enumerate(palette)}
    directions = {name: palette[place] for name, place in _MEANINGS.items()}
    return MappingProxyType({**dict(zip(_ROLES, roles, strict=True)), **places, **directions})


def _half_grey(colour: str) -> str:
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(channel + 0xA8) // 2:02x}" for channel in parts)


def _by_place(patterns: Mapping[int, str]) -> Mapping[str, str]:
    directions = {n: patterns[place] for n, place in _MEANINGS.items() if place in patterns}
    return {f"palette-{place}": pattern for place, pattern in patterns.items()} | directions


THEMES: Mapping[str, Theme] = MappingProxyType(
    {
        "light": Theme(_colours(_LIGHT, (*_OKABE_ITO, *_FURTHER))),
        "dark": Theme(_colours(_DARK, (*_ON_BLACK, *_FURTHER_ON_BLACK))),
        "print": Theme(
            _colours(_PRINT, (*_GREYS, *_GREYS)),
            _by_place(
                {1: "////", 2: "....", 3: "xxxx", 4: "----"}
                | {place: _FURTHER_HATCHES[place // 7 - 1] for place in range(7, 28)}
            ),
            is_grey=True,
        ),
    }
)


def theme_of(name: str) -> Theme:
    """Return a theme by its name."""
    if name not in THEMES:
        raise InputError(f"there is no theme {name!r}", hint=f"choose one of {', '.join(THEMES)}")
    return THEMES[name]
