"""Filter of rows by a condition that users type.

The condition is read here and never evaluated as Python, because it may come from a file.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from volbench.errors import InputError
from volbench.model.frames.column_names import find_column
from volbench.units import parse_duration, parse_size

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<paren>[()])
      | (?P<compare>==|!=|>=|<=|!~|~|=|>|<)
      | (?P<quoted>"[^"]*"|'[^']*')
      | (?P<word>[^\s()=!<>~"']+)
    )""",
    re.VERBOSE,
)
_HINT = "write conditions such as 'bs==4k and host~vm', with and, or, not and parentheses"

_ORDERS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "==": operator.eq,
        "=": operator.eq,
        "!=": operator.ne,
        ">": operator.gt,
        ">=": operator.ge,
        "<": operator.lt,
        "<=": operator.le,
    }
)


def select(frame: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the rows for which a condition holds, with a new index from 0.

    Comparisons are ``==`` (or ``=``), ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``~`` (contains the
    regular expression, whatever the case) and ``!~``; they are joined by ``and``, ``or``, ``not``
    and parentheses. Numbers may have units (``4k``, ``10ms``). A missing value fits nothing but
    ``!=`` and ``!~``. Aliases of latencies (``p99``) mean completion latency where total latency
    was not reported, as in tables.

    Args:
        condition: such as ``bs==4k and (host~vm or repeat>1)``; empty keeps every row.
    """
    if not condition.strip():
        return frame.reset_index(drop=True)
    parser = _Parser(frame, condition, _tokens(condition))
    return frame[parser.whole()].reset_index(drop=True)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(condition: str) -> list[_Token]:
    tokens = []
    at = 0
    text = condition.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable_error(condition, at, f"unexpected {text[at]!r}")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return tokens


def _unreadable_error(condition: str, at: int, why: str) -> InputError:
    return InputError(
        f"the condition {condition!r} cannot be parsed at column {at + 1}: {why}", hint=_HINT
    )


class _Parser:
    """Reads tokens from left to right; ``or`` binds least, then ``and``, then ``not``."""

    def __init__(self, frame: pd.DataFrame, condition: str, tokens: Sequence[_Token]) -> None:
        self._frame = frame
        self._condition = condition
        self._tokens = tokens
        self._place = 0

    def whole(self) -> pd.Series[bool]:
        try:
            mask = self._any()
        except RecursionError:
            raise InputError("the condition is nested too deeply", hint=_HINT) from None
        if self._place < len(self._tokens):
            raise self._error(f"{self._tokens[self._place].text!r} is unexpected at the end")
        return mask

    def _any(self) -> pd.Series[bool]:
        mask = self._all()
        while self._takes("or"):
            mask = mask | self._all()
        return mask

    def _all(self) -> pd.Series[bool]:
        mask = self._term()
        while self._takes("and"):
            mask = mask & self._term()
        return mask

    def _term(self) -> pd.Series[bool]:
        if self._takes("not"):
            return ~self._term()
        if self._takes("("):
            mask = self._any()
            if not self._takes(")"):
                raise self._error(") is missing")
            return mask
        return self._comparison()

    def _comparison(self) -> pd.Series[bool]:
        name = self._next_token("word", "a column")
        sign = self._next_token("compare", "a comparison such as ==")
        value = self._next_value()
        column = self._find_column(name)
        if sign in {"~", "!~"}:
            matches = self._contains(column, value)
            return ~matches if sign == "!~" else matches
        if column.name == "volume":  # tables name the end of its path
            column = column.map(lambda cell: value if str(cell).endswith(f"/{value}") else cell)
        mask = _compare(column, sign, value)
        if mask is None:
            raise self._error(f"{name} is numeric, and {value!r} is not a number")
        return mask

    def _find_column(self, name: str) -> pd.Series:
        resolved = find_column(name, list(self._frame.columns))
        column, completion = self._frame[resolved], f"c{resolved}"
        is_alias = name != resolved and resolved.startswith("lat_")
        if is_alias and completion in self._frame:
            return column.fillna(self._frame[completion])
        return column

    def _contains(self, column: pd.Series, value: str) -> pd.Series[bool]:
        try:
            pattern = re.compile(value, re.IGNORECASE)
        except (re.error, OverflowError) as error:
            raise self._error(f"{value!r} is not a regular expression ({error})") from error
        return column.map(lambda cell: pd.notna(cell) and bool(pattern.search(str(cell)))).astype(
            bool
        )

    def _takes(self, text: str) -> bool:
        if self._place < len(self._tokens):
            token = self._tokens[self._place]
            if token.kind in {"word", "paren"} and token.text == text:
                self._place += 1
                return True
        return False

    def _next_token(self, kind: str, wanted: str) -> str:
        if self._place == len(self._tokens):
            raise self._error(f"{wanted} is missing")
        token = self._tokens[self._place]
        if token.kind != kind:
            raise self._error(f"expected {wanted}, not {token.text!r}")
        self._place += 1
        return token.text

    def _next_value(self) -> str:
        if self._place < len(self._tokens) and self._tokens[self._place].kind == "quoted":
            return self._next_token("quoted", "a value")[1:-1]
        return self._next_token("word", "a value")

    def _error(self, why: str) -> InputError:
        tokens = self._tokens
        at = tokens[self._place].at if self._place < len(tokens) else len(self._condition)
        return _unreadable_error(self._condition, at, why)


def _compare(column: pd.Series, sign: str, value: str) -> pd.Series[bool] | None:
    """Return where a comparison holds; None when a number was needed and not given."""
    wanted: object = value
    number = _parse_number(value)
    is_order = sign not in {"==", "=", "!="}
    if is_order and column.dtype == object and number is not None:
        column = column.map(lambda cell: _parse_number(str(cell))).astype(
            "float64"
        )  # as fio has it
    if pd.api.types.is_bool_dtype(column.dtype):
        wanted = value.lower() in {"1", "true", "yes"}
    elif pd.api.types.is_numeric_dtype(column.dtype):
        if number is None:
            return None
        wanted = number
    mask = pd.Series(_ORDERS[sign](column, wanted), index=column.index)
    return mask.astype("boolean").fillna(value=sign == "!=").astype(bool) & (
        column.notna() | (sign == "!=")
    )


def _parse_number(value: str) -> float | None:
    for read in (float, parse_size, parse_duration):
        try:
            return float(read(value))
        except (ValueError, InputError):
            continue
    return None
