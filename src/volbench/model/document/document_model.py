"""Base class of all document models, field types in base SI units, and JSON Schema of documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from volbench.errors import InputError
from volbench.model.document.located_errors import NULL, Fault, fault_error, input_fault
from volbench.model.frozen_model import Frozen
from volbench.units import parse_duration, parse_rate, parse_size

Schema = dict[str, Any]

MAY_BE_NULL = "may be null"  # Comment of a nullable value; all other keys need a value
# Bounds that pydantic does not translate to JSON Schema behind a validator
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_T = TypeVar("_T")
_ANSWERS = {"true": True, "yes": True, "on": True, "1": True} | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


def document_schema(model: type[BaseModel], *, title: str = "") -> Schema:
    """Return the JSON Schema (2020-12) of a document, for editors and reference pages."""
    schema: Schema = _cleaned(model.model_json_schema(by_alias=True))
    titled = {"title": title} if title else {}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **titled, **schema}


def _cleaned(schema: Any) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """Return a schema that matches the loader: no derived titles, nulls or open mappings."""
    if isinstance(schema, list):
        return [_cleaned(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned: Schema = {
        str(_BOUNDS.get(key, key)): {name: _cleaned(entry) for name, entry in value.items()}
        if key in {"properties", "$defs"}
        else _cleaned(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
    for pattern, values in cleaned.pop("patternProperties", {}).items():
        cleaned |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
    return _without_null(cleaned)


def _without_null(schema: Schema) -> Schema:
    choices = schema.get("anyOf", [])
    if {"type": "null"} not in choices or schema.get("$comment") == MAY_BE_NULL:
        return schema
    others = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    left = [choice for choice in choices if choice != {"type": "null"}]
    return {**left[0], **others} if len(left) == 1 else {"anyOf": left, **others}


def parsed(parse: Callable[[str], object]) -> BeforeValidator:
    """Return a validator that parses texts and passes other values through.

    Args:
        parse: conversion from text to value; raises InputError.
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


def parse_number(text: str) -> float:
    """Return a number without a unit."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"must be a number, not {text!r}", hint="write it like 1.5") from None


def _boolean(text: str) -> bool:
    if text.lower() not in _ANSWERS:
        raise InputError(f"must be true or false, not {text!r}")
    return _ANSWERS[text.lower()]


def value_schema(kind: str) -> WithJsonSchema:
    """Return the JSON Schema of a number with a unit; reference pages show the kind."""
    return WithJsonSchema({"type": ["string", "number"], "$comment": kind})


Text = Annotated[str, BeforeValidator(_as_text)]
Filled = Annotated[Text, Field(min_length=1)]  # A non-empty text
Integer = Annotated[int, BeforeValidator(_integer)]
Number = Annotated[float, parsed(parse_number), Field(allow_inf_nan=False)]
Boolean = Annotated[
    bool,
    parsed(_boolean),
    WithJsonSchema({"enum": [True, False, 0, 1, *_ANSWERS], "$comment": "true or false"}),
]
Duration = Annotated[float, parsed(parse_duration), value_schema("duration")]  # Seconds
Size = Annotated[int, parsed(parse_size), value_schema("size")]  # Bytes
Rate = Annotated[float, parsed(parse_rate), value_schema("rate")]  # Bytes per second


# A value that may be null in the file
Nullable = Annotated[
    _T | None,
    BeforeValidator(lambda value: None if value is NULL else value),
    Field(json_schema_extra={"$comment": MAY_BE_NULL}),
]


class Document(Frozen):
    """A mapping of a document. Field names carry units; their aliases are the keys of the file."""

    model_config = ConfigDict(populate_by_name=True)

    # key set by a single value in place of the mapping: with ``mode``, ``warmup: read`` means
    # ``warmup: {mode: read}``. Empty for none.
    shorthand: ClassVar[str] = ""
    # field that collects all keys that are not fields, such as the options of a job, validated by
    # the type of that field. Empty to refuse them.
    gathered: ClassVar[str] = ""
    # fields that are written even with their default value
    always_dumped: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, value: object) -> object:
        is_single = not isinstance(value, Mapping | list | BaseModel) and value is not NULL
        if cls.shorthand and is_single:
            return {cls.shorthand: value}
        return cls._gathered(value) if cls.gathered and isinstance(value, Mapping) else value

    @classmethod
    def _gathered(cls, value: Mapping[str, object]) -> dict[str, object]:
        fields = cls.model_fields.items()
        known = {field.alias or name for name, field in fields if name != cls.gathered}
        others = {key: item for key, item in value.items() if key not in known}
        return {**{key: item for key, item in value.items() if key in known}, cls.gathered: others}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of the mapping or of its single-value shorthand."""
        schema = handler(core_schema)
        if not cls.shorthand:
            return schema
        mapping = dict(handler.resolve_ref_schema(schema))
        return {"anyOf": [mapping["properties"][cls.shorthand], mapping]}

    def document(self) -> dict[str, object]:
        """Return the content of a file that parses as this document."""
        content = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name in self.always_dumped or value != field.get_default(call_default_factory=True):
                content[field.alias or name] = _written(value)
        return content


def _written(value: object) -> object:
    """Return the YAML form of a value; numbers are in base units."""
    if isinstance(value, Document):
        return value.document()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_written(item) for item in value]
    if isinstance(value, BaseModel):
        return str(value)
    return shortest(value) if isinstance(value, float) else value


def shortest(number: float) -> int | str:
    """Return a whole number as int, any other as decimal text: units cannot follow exponents."""
    return int(number) if number == int(number) else f"{Decimal(repr(number)):f}"
