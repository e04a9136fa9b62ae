"""Base of all document models: shorthands, dumping, JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from volbench.model.base import Frozen
from volbench.model.document.located_errors import NULL


class Document(Frozen):
    """A mapping of a document. Field names carry units; their aliases are the keys of the file.

    Attributes:
        shorthand: key that a single value in place of the mapping stands for: with ``mode``,
            ``warmup: read`` means ``warmup: {mode: read}``. Empty for none.
        always_dumped: fields that are written even when they have their default value.
    """

    model_config = ConfigDict(populate_by_name=True)

    shorthand: ClassVar[str] = ""
    always_dumped: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, value: object) -> object:
        is_single = not isinstance(value, Mapping | list | BaseModel) and value is not NULL
        return {cls.shorthand: value} if cls.shorthand and is_single else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of the mapping, or of the single value that may stand for it."""
        schema = handler(core_schema)
        if not cls.shorthand:
            return schema
        mapping = dict(handler.resolve_ref_schema(schema))
        return {"anyOf": [mapping["properties"][cls.shorthand], mapping]}

    def document(self) -> dict[str, object]:
        """Return the content of a file that reads back as this document."""
        content = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name in self.always_dumped or value != field.get_default(call_default_factory=True):
                content[field.alias or name] = _written(value)
        return content


def _written(value: object) -> object:
    """Return a value as it is written in YAML; numbers are in base units."""
    if isinstance(value, Document):
        return value.document()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _written(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_written(item) for item in value]
    return shortest(value) if isinstance(value, float) else value


def shortest(number: float) -> int | str:
    """Return a number whole where it is, and never with an exponent, which takes no unit."""
    return int(number) if number == int(number) else f"{Decimal(repr(number)):f}"


def document_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a document, for editors and reference pages."""
    schema: dict[str, Any] = _without_titles(model.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_titles(schema: Any) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """Return a schema without the titles that pydantic derives from the names of classes."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(part) for name, part in value.items()}
        if key in {"properties", "$defs"}
        else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
