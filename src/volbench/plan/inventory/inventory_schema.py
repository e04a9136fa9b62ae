"""A JSON Schema of volbench's own inventories for editors, as there is one of profiles."""

from __future__ import annotations

from volbench.plan.inventory.host_entries import HOST_KEYS
from volbench.plan.inventory.own import OWN_KEYS
from volbench.plan.profile.limits_document import limits_schema

Schema = dict[str, object]

_TEXT: Schema = {"type": ["string", "number"]}
_NAME: Schema = {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9._,\[\]-]*$"}
_ROLES: Schema = {"type": "string", "pattern": "^(?!global)[A-Za-z0-9_-]{1,100}$"}
_LABELS: Schema = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"}
_BOOLEAN: Schema = {"enum": [True, False, 0, 1, "0", "1", "yes", "no", "on", "off"]}
_LIMITS = limits_schema()
_LEAVE: Schema = {"type": "string", "pattern": r"^(serial:.*\S.*|/dev/disk/by-id/[^/]+)$"}

_FIELDS: dict[str, Schema] = {
    "address": {"type": "string", "description": "Name or IP address; local for this machine."},
    "port": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]},
    "user": {**_TEXT, "description": "Whom to log in as."},
    "key": {"type": "string", "description": "File of a private key."},
    "jump": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "Hosts to go through, first hop first.",
    },
    "sudo": {**_BOOLEAN, "description": "Start fio by sudo -n."},
    "volumes": {
        "type": "object",
        "description": "Role to device, file, directory or NBD uri.",
        "propertyNames": _ROLES,
        "additionalProperties": {
            "type": ["string", "null"],
            "pattern": r"^(/|nbds?(\+unix)?://)",
        },
    },
    "labels": {
        "type": "object",
        "description": "What tables and charts tell hosts apart by.",
        "propertyNames": _LABELS,
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    },
    "limits": {
        "description": "What the provider promises, for all roles or by role.",
        "anyOf": [_LIMITS, {"type": "object", "additionalProperties": _LIMITS}],
    },
    "allow_destroy": {
        "anyOf": [_LEAVE, {"type": "array", "items": _LEAVE}],
        "description": "Devices that may be overwritten.",
    },
    "workdir": {"type": "string", "pattern": "^/", "description": "Folder for what Runs leave."},
}


def json_schema() -> Schema:
    """Return the JSON Schema (2020-12) of an inventory in our own YAML."""
    host = _properties(tuple(HOST_KEYS), nullable=True)
    names: Schema = {"type": "array", "items": _NAME, "minItems": 1}
    properties: dict[str, Schema] = {
        "defaults": _properties(tuple(key for key in HOST_KEYS if key != "address")),
        "hosts": {
            "anyOf": [
                names,
                {
                    "type": "object",
                    "propertyNames": _NAME,
                    "additionalProperties": host,
                    "minProperties": 1,
                },
            ]
        },
        "groups": {
            "type": "object",
            "propertyNames": {**_NAME, "not": {"const": "all"}},
            "additionalProperties": {"anyOf": [_NAME, {"type": "array", "items": _NAME}]},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "volbench inventory",
        "type": "object",
        "properties": {name: properties[name] for name in OWN_KEYS},
        "required": ["hosts"],
        "additionalProperties": False,
    }


def _properties(names: tuple[str, ...], *, nullable: bool = False) -> Schema:
    """Return a mapping of some keys; null takes an inherited value away."""
    fields = {name: _FIELDS[name] for name in names}
    if nullable:
        fields = {name: {"anyOf": [one, {"type": "null"}]} for name, one in fields.items()}
    return {"type": ["object", "null"], "properties": fields, "additionalProperties": False}
