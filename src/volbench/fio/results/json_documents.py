"""JSON documents in fio's output, and the text around them.

Neither stdout nor ``--output`` is pure JSON: notes, errors and status documents share the stream
(fio issues 731, 1685 and 2048). A document begins with a brace in the first column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from volbench.errors import OutputError

# Start of the line in the diagnostics about a truncated document after the last
CUT_OFF = "the last JSON document is cut off at line"

_START = re.compile(r'(?:^|(?<=\r))\{(?=\s*"|\s*\Z)', re.MULTILINE)
_NO_NUMBER = re.compile(r"-?(?:nan|inf)\b")
_STRING_OR_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+"|(?<![\w.])-?(?:nan|inf)\b', re.DOTALL)
_QUOTED_LINES = 5


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
    position = 0
    while start := _START.search(text, position):
        yield text[position : start.start()]
        found = _decode(text, start.start())
        if isinstance(found, Broken):
            following = _START.search(text, start.end())
            position = following.start() if following else len(text)
            yield found
        else:
            document, position = found
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


def _decode(text: str, start: int) -> tuple[dict[str, object], int] | Broken:
    """Return the object that begins at `start` and where it ends, or why there is none."""
    found = _try(text, start)
    if isinstance(found, Broken) and _NO_NUMBER.match(text, found.position):
        return _try(text[:start] + _STRING_OR_NO_NUMBER.sub(_readable, text[start:]), start)
    return found


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
            "fio left no output at all",
            hint="see its stderr and exit status",
            path=str(path),
        )
    return OutputError(
        f"fio left no JSON; it printed: {quoted}",
        hint="results need fio's --output-format=json or json+",
        path=str(path),
    )
