"""A JSON Schema of files of prices for editors, as there is one of profiles."""

from __future__ import annotations

from volbench.plan.prices.read_prices import (
    BURST_KEYS,
    FILE_KEYS,
    FLAVOR_KEYS,
    METER_KEYS,
    ONCE_KEYS,
    VOLUME_KEYS,
)

Schema = dict[str, object]

_TEXT: Schema = {"type": ["string", "number"]}
_AMOUNT: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
    ]
}
_SOURCE: Schema = {
    "description": "Where the price is from.",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"title": _TEXT, "url": _TEXT},
            "required": ["title"],
            "additionalProperties": False,
        },
    ],
}


def _mapping(names: tuple[str, ...], *, needs: tuple[str, ...] = ()) -> Schema:
    """Return a mapping of some keys."""
    return {
        "type": "object",
        "properties": {name: _FIELDS[name] for name in names},
        "required": list(needs),
        "additionalProperties": False,
    }


def _by_name(of_each: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of_each}


_FIELDS: dict[str, Schema] = {
    "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
    "hours_per_month": {**_TEXT, "description": "730 when left out."},
    "family": {**_TEXT, "description": "What flavors or types are compared as one."},
    "provider": _TEXT,
    "region": _TEXT,
    "checked": {"type": "string", "description": "The day it was looked up: 2026-01-31."},
    "source": _SOURCE,
    "hourly": {**_AMOUNT, "description": "For each hour."},
    "monthly": {**_AMOUNT, "description": "For each month; of a unit, where it is counted."},
    "per_gib_month": {**_AMOUNT, "description": "For each GiB and month."},
    "per": {**_TEXT, "description": "One unit, such as 1MiB/s."},
    "included": {**_TEXT, "description": "What costs nothing."},
    "per_million_ios": _AMOUNT,
    "once": _AMOUNT,
    "per_gib": _AMOUNT,
}
_FIELDS |= {
    "iops": _mapping(METER_KEYS, needs=("monthly",)),
    "bandwidth": _mapping(METER_KEYS, needs=("monthly", "per")),
    "burst": _mapping(BURST_KEYS),
    "initialisation": _mapping(ONCE_KEYS),
}
_FIELDS |= {
    "flavors": _by_name(_mapping(FLAVOR_KEYS)),
    "volume_types": _by_name(_mapping(VOLUME_KEYS)),
}


def json_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a file of prices."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "volbench prices",
        **_mapping(FILE_KEYS, needs=("currency",)),
        "anyOf": [{"required": ["flavors"]}, {"required": ["volume_types"]}],
    }
