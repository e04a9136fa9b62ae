"""Layout of text columns in a limited width: selection, widths and line breaks."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.present.tables.table import IDENTITY, Column, Item

GAP = 2  # Blanks between columns
# Widths that a folded column and one of the identity keep if they can; one that each keeps
_FOLDED_WIDTH, _IDENTITY_WIDTH, _NARROWEST = 24, 16, 8
# Columns of this priority are what the table is for: the identity is broken to keep them
_MAIN_PRIORITY = 1


@dataclass(frozen=True)
class Layout:
    """Visible columns of a table and their widths."""

    shown: Sequence[int]  # indexes of the columns
    widths: Sequence[int]  # of each shown column


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def lay_out(
    columns: Sequence[Column[Item]], natural: Sequence[int], *, width: int | None
) -> Layout:
    """Return the columns that fit, and their widths.

    Args:
        width: of the screen; None where there is no limit.
    """
    shown = list(range(len(columns)))
    if width is None:
        return Layout(shown, natural)
    least = [
        min(wanted, max(_FOLDED_WIDTH, display_width(column.heading)))
        if column.is_folded
        else wanted
        for column, wanted in zip(columns, natural, strict=True)
    ]
    broken = [
        min(wanted, max(_IDENTITY_WIDTH, display_width(column.heading)))
        if column.priority == IDENTITY
        else wanted
        for column, wanted in zip(columns, least, strict=True)
    ]
    while _total(least, shown) > width:
        others = [index for index in shown if columns[index].priority != IDENTITY]
        are_main = all(columns[index].priority <= _MAIN_PRIORITY for index in others)
        if not others or (are_main and _total(broken, shown) <= width):
            break
        shown.remove(max(others, key=lambda index: (columns[index].priority, index)))
    widths = [least[index] for index in shown]
    room = width - GAP * (len(shown) - 1)
    return Layout(shown, _stretched(_shrunk(widths, room), [natural[i] for i in shown], room))


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + GAP * (len(shown) - 1)


def _shrunk(widths: list[int], room: int) -> list[int]:
    """Narrow the widest columns until they fit: their cells are broken into lines."""
    while sum(widths) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _stretched(widths: list[int], natural: Sequence[int], room: int) -> list[int]:
    """Distribute the remaining width to columns that are narrower than their text."""
    spare = room - sum(widths)
    while spare > 0:
        wanting = [i for i, width in enumerate(widths) if width < natural[i]]
        if not wanting:
            break
        for index in wanting[:spare]:
            widths[index] += 1
        spare -= len(wanting[:spare])
    return widths


def wrap(text: str, width: int | None) -> list[str]:
    """Return a text in lines that are no longer than a width; words that are longer are broken.

    Args:
        width: None for no limit.
    """
    lines = text.split("\n")
    if width is None or all(display_width(line) <= width for line in lines):
        return lines
    return [part for line in lines for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    parts: list[str] = []
    current = line[: len(line) - len(line.lstrip(" "))]
    is_blank = True
    for word in line.split():
        joined = f"{current}{word}" if is_blank else f"{current} {word}"
        if display_width(joined) <= width:
            current, is_blank = joined, False
            continue
        if not is_blank:
            parts.append(current)
        *whole, current = _broken(word, width)
        parts += whole
        is_blank = False
    return [*parts, current]


def _broken(word: str, width: int) -> list[str]:
    """Return a word in pieces that fit, broken behind a punctuation mark where there is one."""
    pieces, current = [], ""
    for char in word:
        if display_width(current + char) > width and current:
            mark = max(current.rfind(mark) for mark in "-_./:,=") + 1
            end = mark if mark > len(current) // 2 else len(current)
            pieces.append(current[:end])
            current = current[end:]
        current += char
    return [*pieces, current]


def aligned(text: str, width: int, *, is_right: bool) -> str:
    """Return a text padded with blanks."""
    blanks = " " * (width - display_width(text))
    return blanks + text if is_right else text + blanks
