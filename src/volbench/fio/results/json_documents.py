"""JSON documents in fio's output, and the text around them.

Neither stdout nor ``--output`` is pure JSON: notes, errors and status documents share the stream
(fio issues 731, 1685 and 2048). A document begins with a brace in the first column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard, cast

from volbench.errors import OutputError

# Start of the line in the diagnostics about a truncated document after the last
CUT_OFF = "the last JSON document is cut off at line"

_START = re.compile(r'(?:^|(?<=\r))\{(?=\s*"|\s*\Z)', re.MULTILINE)
_NO_NUMBER = re.compile(r"-?(?:nan|inf)\b")
_STRING_OR_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+"|(?<![\w.])-?(?:nan|inf)\b', re.DOTALL)
_QUOTED_LINES = 5
# Broken documents of one output: each costs a search through all of it.
# Noticed by: tests/extensions/importer/test_forms.py::test_unclosed_braces_are_refused_quickly
MAX_BROKEN = 100

# Upper bound of counts, sizes, rates and times (in fio's units): 9 PB, or 104 days in ns. Below it
# every integer is exact as a float, and the sum of a thousand fits in 64 bits.
_MAX_NUMBER = 2**53
_UNITS_NS = {"latency_ns": 1, "latency_us": 1_000, "latency_ms": 1_000_000}
_SLOWEST = ">="


class Disputed(dict[str, object]):
    """An object in which keys are repeated with different values; the last value counts."""

    keys_in_dispute: frozenset[str] = frozenset()  # those keys


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the decoded object, with its disputed keys."""
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    keys = frozenset(key for key, value in pairs if plain[key] != value)
    if not keys:
        return plain
    disputed = Disputed(plain)
    disputed.keys_in_dispute = keys
    return disputed


# Decoder of fio's JSON, in which keys may be repeated and strings have control characters
DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)


@dataclass(frozen=True)
class Documents:
    """Documents of one output."""

    last: dict[str, object]  # the last complete document
    count: int  # number of complete documents
    diagnostics: str  # the text outside them


def read_documents(text: str, *, path: str = "") -> Documents:
    """Return the last complete document of an output, and the text around all of them."""
    last: dict[str, object] | None = None
    count, outside = 0, list[str]()
    cut: Broken | None = None
    for piece in pieces_of(text):
        if isinstance(piece, str):
            outside.append(piece)
        elif isinstance(piece, Broken):
            cut = piece
            outside.append(f"\nunreadable JSON at line {piece.line}: {piece.reason}\n")
        else:
            last, count, cut = piece, count + 1, None
    if cut is not None:
        outside.append(f"\n{CUT_OFF} {cut.line}\n")
    if last is not None:
        return Documents(last, count, _tidy("".join(outside)))
    if cut is not None:
        raise OutputError(
            f"fio's JSON cannot be parsed at line {cut.line}, column {cut.column}: {cut.reason}",
            hint="fio was killed, or the disk that holds its output was full",
            path=str(path),
            line=cut.line,
            column=cut.column,
        )
    raise _nothing(text, path)


def pieces_of(text: str) -> Iterator[dict[str, object] | Broken | str]:
    """Yield the documents of an output, the broken ones, and the text around them."""
    position = broken = 0
    while start := _START.search(text, position):
        yield text[position : start.start()]
        decoded = _decode(text, start.start())
        if isinstance(decoded, Broken):
            broken += 1
            if broken > MAX_BROKEN:
                raise OutputError(
                    f"more than {MAX_BROKEN} documents of its JSON cannot be parsed",
                    hint="it is not output of fio, or it was damaged",
                )
            following = _START.search(text, start.end())
            position = following.start() if following else len(text)
            yield replace(decoded, text=text[start.start() : position])
        else:
            document, position = decoded
            yield document
    yield text[position:]


def _quote(text: str) -> str:
    """Return the first lines of a text in one line for a message."""
    lines = _tidy(text).split("\n")
    more = " ..." if len(lines) > _QUOTED_LINES else ""
    return " / ".join(line.strip()[:200] for line in lines[:_QUOTED_LINES]) + more


@dataclass(frozen=True)
class Broken:
    """A document that cannot be parsed, the place of the error, and the reason."""

    position: int
    line: int
    column: int
    reason: str
    text: str = ""  # to the next document, or the end


def _decode(text: str, start: int) -> tuple[dict[str, object], int] | Broken:
    """Return the object that begins at `start` and where it ends, or why there is none."""
    decoded = _try(text, start)
    if isinstance(decoded, Broken) and _NO_NUMBER.match(text, decoded.position):
        return _try(text[:start] + _STRING_OR_NO_NUMBER.sub(_readable, text[start:]), start)
    return decoded


def _try(text: str, start: int) -> tuple[dict[str, object], int] | Broken:
    try:
        return DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        ends = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        reason = "the text ends before the document does" if ends else error.msg
        return Broken(error.pos, error.lineno, error.colno, reason)
    except ValueError:
        reason = "a number has too many digits"
    except RecursionError:
        reason = "it is nested too deeply"
    return Broken(start, text.count("\n", 0, start) + 1, 1, reason)


def _readable(match: re.Match[str]) -> str:
    """Return a token of the same length that Python reads for ``nan`` and ``inf``."""
    token = match[0]
    return token if token[0] == '"' else "NaN".rjust(len(token))


def _tidy(text: str) -> str:
    lines = (line.rstrip() for line in re.split(r"[\r\n]+", text))
    return "\n".join(line for line in lines if line)


def _nothing(text: str, path: str) -> OutputError:
    quoted = _quote(text)
    if not quoted:
        return OutputError(
            "fio produced no output", hint="see its stderr and exit status", path=str(path)
        )
    return OutputError(
        f"fio printed no JSON: {quoted}",
        hint="results need fio's --output-format=json or json+",
        path=str(path),
    )


def are_counts(values: list[object]) -> TypeGuard[list[int]]:
    """Return whether decoded values are plain integers within bounds, as nearly all counts are."""
    if set(map(type, values)) != {int}:
        return False
    counts = cast("list[int]", values)
    return min(counts) >= 0 and max(counts) < _MAX_NUMBER


@dataclass(frozen=True)
class Fields:
    """One JSON object and its location, for error messages."""

    raw: Mapping[str, object]  # the decoded object; of a repeated key the last value
    where: str = ""  # such as ``jobs[0].read``
    path: str = ""  # the file

    def wrong(self, key: str, expected: str) -> OutputError:
        """Return the error of a wrong value, with the expected type."""
        place = self._path_to(key)
        actual = repr(self.raw[key])[:60] if key in self.raw else "nothing"
        return OutputError(
            f"fio's JSON has {actual} at {place}, expected {expected}",
            path=str(self.path),
            key=place,
        )

    def number(self, key: str) -> float | None:
        """Return a number; None when missing, nan or inf."""
        value = self._numeric(key)
        return None if value is None or math.isnan(value) else value

    def need_number(self, key: str) -> float:
        """Return a required number; NaN for nan and inf, which fio prints where it divides by 0."""
        value = self._numeric(key)
        if value is None:
            raise self.wrong(key, "a number")
        return value

    def duration_s(self, key: str) -> float:
        """Return a required duration in milliseconds as seconds; nan and inf are refused."""
        value = self.need_number(key)
        if math.isnan(value):
            raise self.wrong(key, "a duration in milliseconds")
        return value / 1000

    def count(self, key: str) -> int | None:
        """Return an integer, or None when missing."""
        value = self._numeric(key)
        if value is None:
            return None
        if math.isnan(value) or int(value) != value:
            raise self.wrong(key, "an integer")
        return int(value)

    def need_count(self, key: str) -> int:
        """Return a required integer."""
        value = self.count(key)
        if value is None:
            raise self.wrong(key, "an integer")
        return value

    def kib(self, key: str) -> int:
        """Return a required number of KiB as bytes."""
        value = self.need_count(key)
        if value * 1024 >= _MAX_NUMBER:
            raise self.wrong(key, "a size below 2^53 bytes")
        return value * 1024

    def text(self, key: str) -> str | None:
        """Return a string, or None when missing."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return None if value is None else self._unicode(key, value)

    def child(self, key: str) -> Fields | None:
        """Return the object of a key, or None when missing."""
        if key not in self.raw:
            return None
        return self._below(key, self.raw[key], self._path_to(key))

    def children(self, key: str) -> list[Fields]:
        """Return the objects of a list; empty when missing."""
        value = self.raw.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        place = self._path_to(key)
        return [self._below(key, item, f"{place}[{n}]") for n, item in enumerate(value)]

    def texts(self) -> dict[str, str]:
        """Return all values as strings, for fio's options."""
        texts_by_key: dict[str, str] = {}
        for key, value in self.raw.items():
            if isinstance(value, dict | list | None):
                raise self.wrong(key, "a string")
            texts_by_key[self._unicode(key, key)] = self._unicode(key, str(value))
        return texts_by_key

    def numbers(self) -> dict[str, float]:
        """Return all values as numbers, for fio's tables."""
        return {key: self.need_number(key) for key in self.raw}

    def _numeric(self, key: str) -> int | float | None:
        value = self.raw.get(key)
        if value is None and key not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if isinstance(value, float) and not math.isfinite(value):
            return math.nan
        if value < 0:
            raise self.wrong(key, "a number that is not negative")
        if value >= _MAX_NUMBER:
            raise self.wrong(key, "a number below 2^53")
        return value

    def _unicode(self, key: str, text: str) -> str:
        """Return a text without lone surrogates, which can be neither printed nor stored."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.wrong(key, "Unicode text") from None
        return text

    def _path_to(self, key: str) -> str:
        """Return where a key is; one that cannot be printed or stored is escaped."""
        name = key if key.isprintable() else ascii(key)[:60]
        return f"{self.where}.{name}" if self.where else name

    def _below(self, key: str, value: object, place: str) -> Fields:
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Fields(value, place, self.path)


def read_depth_shares(job: Fields) -> dict[int, float]:
    """Return the least number of I/Os in flight of each class to its percentage."""
    block = job.child("iodepth_level")
    if block is None:
        return {}
    return dict(sorted((_count_in(block, key), block.need_number(key)) for key in block.raw))


def read_clat_shares(job: Fields) -> dict[int, float]:
    """Return the least completion latency of each class, in nanoseconds, to its percentage.

    The first class begins at 0: fio before 3.0 has none below 2 us.
    """
    starts, shares = [0], []
    for name, unit_ns in _UNITS_NS.items():
        block = job.child(name)
        if block is None:
            continue
        for *_, key in sorted((_count_in(block, k), k.startswith(_SLOWEST), k) for k in block.raw):
            end_ns = _count_in(block, key) * unit_ns
            shares.append(block.need_number(key))
            starts += [] if key.startswith(_SLOWEST) else [end_ns]
    if any(end <= start for start, end in pairwise(starts)):
        raise job.wrong("latency_us", "classes in order")
    return dict(zip(starts, shares, strict=False))


def _count_in(block: Fields, key: str) -> int:
    digits = key.removeprefix(_SLOWEST)
    if not (digits.isdigit() and digits.isascii() and len(digits) < 10):
        raise block.wrong(key, "a class")
    return int(digits)
