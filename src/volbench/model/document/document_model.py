"""Base of all document models: shorthands, gathered keys, dumping."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import ClassVar

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
        gathered: field that takes all keys that are not fields, such as the options of a job; they
            are validated by that field's type. Empty to refuse them.
        always_dumped: fields that are written even when they have their default value.
    """

    model_config = ConfigDict(populate_by_name=True)

    shorthand: ClassVar[str] = ""
    gathered: ClassVar[str] = ""
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
    if isinstance(value, BaseModel):
        return str(value)
    return shortest(value) if isinstance(value, float) else value


def shortest(number: float) -> int | str:
    """Return a number whole where it is, and never with an exponent, which takes no unit."""
    return int(number) if number == int(number) else f"{Decimal(repr(number)):f}"
