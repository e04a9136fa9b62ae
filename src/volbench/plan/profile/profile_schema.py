"""JSON Schema of profiles for editors: `ProfileDocument` with the options of one fio."""

from __future__ import annotations

from typing import Any

from volbench.model.document.document_model import document_schema
from volbench.model.profile.fio_options import DD_NAMES, Option, OptionKind, OptionTable
from volbench.model.profile.option_policy import OWN
from volbench.plan.profile.load_profile import ProfileDocument

Schema = dict[str, Any]

_BOOLEAN: Schema = {"enum": [True, False, 0, 1, "0", "1", "yes", "no", "on", "off", None]}
_OPTIONS: Schema = {"$ref": "#/$defs/options"}


def json_schema(table: OptionTable) -> Schema:
    """Return the JSON Schema (2020-12) of a profile for the options of one fio."""
    schema = document_schema(ProfileDocument)
    options = _option_properties(table)
    models, keys = schema["$defs"], schema["properties"]
    models["options"] = {
        "type": "object",
        "properties": options,
        "additionalProperties": False,
    }
    job = models["JobDocument"]
    del job["properties"]["options"]
    dd_only: Schema = {name: {"type": "string"} for name in DD_NAMES if name not in options}
    job["properties"] = {**options, **dd_only, **job["properties"]}
    job["type"] = ["object", "null"]
    job["properties"]["sections"]["additionalProperties"] = {"anyOf": [_OPTIONS, {"type": "null"}]}
    matrix = models["MatrixDocument"]["properties"]
    del matrix["axes"]
    axes: Schema = {
        name: {"type": "array", "items": option, "minItems": 1} for name, option in options.items()
    }
    models["MatrixDocument"]["properties"] = {**axes, **matrix}
    models["MatrixEntry"] = _OPTIONS
    keys["defaults"] = {**_OPTIONS, "description": keys["defaults"]["description"]}
    return {
        **schema,
        "title": "volbench profile",
        "description": f"Options of fio {table.fio_version}.",
        "anyOf": [{"required": [name]} for name in ("jobs", "matrix", "phases")],
    }


def _option_properties(table: OptionTable) -> Schema:
    return {
        name: _option_schema(option)
        for option in table.options.values()
        if option.name not in OWN
        for name in (option.name, *option.aliases)
    }


def _option_schema(option: Option) -> Schema:
    described: Schema = {"description": option.help} if option.help else {}
    if option.kind in {OptionKind.BOOLEAN, OptionKind.FLAG}:
        return {**_BOOLEAN, **described}
    if option.kind is OptionKind.CHOICE:
        pattern = "|".join(_escaped(choice) for choice in option.choices)
        return {
            **described,
            "anyOf": [
                {"enum": [*option.choices, *(int(c) for c in option.choices if c.isdecimal())]},
                {"type": "string", "pattern": f"^({pattern})(:.*)?$"},
                {"type": "null"},
            ],
        }
    return {"type": ["string", "number", "boolean", "null"], **described}


def _escaped(text: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter == "_" else f"\\{letter}" for letter in text
    )
