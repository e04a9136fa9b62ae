"""Types of document fields: texts with units become numbers in base SI units."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from volbench.errors import InputError
from volbench.model.document.document_schema import MAY_BE_NULL
from volbench.model.document.located_errors import NULL, Fault, fault_error, input_fault
from volbench.units import parse_duration, parse_rate, parse_size

_T = TypeVar("_T")


def parsed(parse: Callable[[str], object]) -> BeforeValidator:
    """Return a validator that reads texts with a function and keeps any other value.

    Args:
        parse: text to value; raises InputError.
    """

    def read(value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except InputError as error:
            raise fault_error(input_fault(error)) from error

    return BeforeValidator(read)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _integer(value: object) -> object:
    if isinstance(value, bool) or (
        isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]{1,18}", value)
    ):
        fault = Fault(f"must be an integer, not {value!r}", "write digits only, such as 16")
        raise fault_error(fault)
    return int(value) if isinstance(value, str) else value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"must be a number, not {text!r}", hint="write it like 1.5") from None


_ANSWERS = {"true": True, "yes": True, "on": True, "1": True} | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


def _boolean(text: str) -> bool:
    if text.lower() not in _ANSWERS:
        raise InputError(f"must be true or false, not {text!r}")
    return _ANSWERS[text.lower()]


def value_schema(kind: str) -> WithJsonSchema:
    """Return the JSON Schema of a number with a unit; the kind is named on reference pages."""
    return WithJsonSchema({"type": ["string", "number"], "$comment": kind})


Text = Annotated[str, BeforeValidator(_as_text)]
Filled = Annotated[Text, Field(min_length=1)]
"""A text that is not empty."""
Integer = Annotated[int, BeforeValidator(_integer)]
Number = Annotated[float, parsed(_number), Field(allow_inf_nan=False)]
Boolean = Annotated[
    bool,
    parsed(_boolean),
    WithJsonSchema({"enum": [True, False, 0, 1, *_ANSWERS], "$comment": "true or false"}),
]
Duration = Annotated[float, parsed(parse_duration), value_schema("duration")]
"""Seconds."""
Size = Annotated[int, parsed(parse_size), value_schema("size")]
"""Bytes."""
Rate = Annotated[float, parsed(parse_rate), value_schema("rate")]
"""Bytes a second."""


def null_is_none(value: object) -> Any:  # noqa: ANN401 - whatever a field holds
    """Return None for a key without a value; for fields that may say so."""
    return None if value is NULL else value


Nullable = Annotated[
    _T | None,
    BeforeValidator(null_is_none),
    Field(json_schema_extra={"$comment": MAY_BE_NULL}),
]
"""A value that may be null in a file."""
