"""JSON Schema of a document model, and the key table for reference pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

MAY_BE_NULL = "may be null"  # Comment of a nullable value; all other keys need a value


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
        str(_BOUNDS.get(key, key)): {name: _cleaned(part) for name, part in value.items()}
        if key in {"properties", "$defs"}
        else _cleaned(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
    for pattern, values in cleaned.pop("patternProperties", {}).items():
        cleaned |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
    return _without_null(cleaned)


# Bounds that pydantic does not translate to JSON Schema behind a validator
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def _without_null(schema: Schema) -> Schema:
    choices = schema.get("anyOf", [])
    if {"type": "null"} not in choices or schema.get("$comment") == MAY_BE_NULL:
        return schema
    others = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    left = [choice for choice in choices if choice != {"type": "null"}]
    return {**left[0], **others} if len(left) == 1 else {"anyOf": left, **others}


def key_table(model: type[BaseModel]) -> str:
    """Return the keys of a model as a Markdown table: key, value, default, meaning."""
    schema = document_schema(model)
    definitions = schema.get("$defs", {})
    schema = next((c for c in schema.get("anyOf", ()) if "properties" in c), schema)
    rows = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, part in schema["properties"].items():
        if "description" in part:
            value = ", ".join(dict.fromkeys(_value_words(part, definitions)))
            default = "required" if key in schema.get("required", ()) else _default(part)
            example = f" Example: `{part['examples'][0]}`." if "examples" in part else ""
            rows.append(f"| `{key}` | {value} | {default} | {part['description']}{example} |")
    return "\n".join(rows)


def _value_words(part: Schema, definitions: Schema) -> Iterator[str]:
    """Yield the kinds of values that a part of a schema accepts."""
    if "$ref" in part:
        part = definitions[part["$ref"].rpartition("/")[2]]
    if "anyOf" in part:
        for choice in part["anyOf"]:
            yield from _value_words(choice, definitions)
    elif "$comment" in part:
        yield part["$comment"]
    elif "enum" in part or "const" in part:
        yield from (f"`{choice}`" for choice in part.get("enum", [part.get("const")]))
    elif "minimum" in part and "maximum" in part:
        yield f"{part['type']} {part['minimum']:,} to {part['maximum']:,}"
    elif part.get("type") in _WORDS:
        yield _WORDS[part["type"]]


_WORDS = {
    "string": "text",
    "array": "list",
    "object": "mapping",
    "integer": "integer",
    "number": "number",
}


def _default(part: Schema) -> str:
    """Return the default value as written in a file."""
    default = part.get("default")
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if default in (None, "", 0, []) or isinstance(default, dict):
        return "0" if default == 0 and default is not None else ""
    if part.get("$comment") == "duration":
        return next(
            f"`{int(default / seconds)}{unit}`"
            for seconds, unit in ((3600, "h"), (60, "m"), (1, "s"), (0.001, "ms"))
            if default % seconds == 0
        )
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
