"""A JSON Schema of profiles for editors: completion, hints, and red lines under mistakes."""

from __future__ import annotations

from volbench.model.profile.dd_option import NAMES as DD_NAMES
from volbench.model.profile.fio_option import OWN, Option, OptionKind, OptionTable
from volbench.model.profile.profile_model import Order, Phase, Start, Tool, Warming
from volbench.plan.expansion.extents import MOST_EXTENTS
from volbench.plan.profile.declared_limits import limits_schema
from volbench.plan.profile.jobs import JOB_KEYS, MATRIX_KEYS
from volbench.plan.profile.load_profile import MOST_REPEATS, MOST_SEED, PROFILE_KEYS
from volbench.plan.profile.rounds_setting import CRITERION, LEAST_ROUNDS, MOST_ROUNDS
from volbench.plan.profile.start_policy import MOST_CLIENTS

Schema = dict[str, object]

_NAME: Schema = {"type": "string", "pattern": "^(?!global)[A-Za-z0-9_-]{1,100}$"}
_TEXT: Schema = {"type": "string"}
_NUMBER_TEXT: Schema = {"type": ["string", "number"]}
_BOOLEAN: Schema = {"enum": [True, False, 0, 1, "0", "1", "yes", "no", "on", "off", None]}
_LIMITS = limits_schema()


def json_schema(table: OptionTable) -> Schema:
    """Return the JSON Schema (2020-12) of a profile for the options of one fio."""
    options = _option_properties(table)
    job: Schema = {
        "type": ["object", "null"],
        "properties": {**options, **_dd_properties(options), **_job_properties(options)},
        "additionalProperties": False,
    }
    jobs: Schema = {
        "type": "object",
        "propertyNames": _NAME,
        "additionalProperties": {"$ref": "#/$defs/job"},
        "minProperties": 1,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "volbench profile",
        "description": f"Options of fio {table.fio_version}.",
        "type": "object",
        "$defs": {
            "options": {"type": "object", "properties": options, "additionalProperties": False},
            "job": job,
            "jobs": jobs,
            "limits": _LIMITS,
        },
        "properties": {name: _PROFILE.get(name, {}) for name in PROFILE_KEYS}
        | {"matrix": _matrix(options)},
        "required": ["name"],
        "anyOf": [{"required": [name]} for name in ("jobs", "matrix", "phases")],
        "additionalProperties": False,
    }


_JOBS: Schema = {"$ref": "#/$defs/jobs"}
_PROFILE: dict[str, Schema] = {
    "name": {**_NAME, "description": "Name of the profile."},
    "description": {**_TEXT, "description": "One paragraph."},
    "source": {
        "description": "Where the profile comes from.",
        "anyOf": [
            _TEXT,
            {
                "type": "object",
                "properties": {
                    "title": _TEXT,
                    "author": _TEXT,
                    "year": {"type": "integer"},
                    "url": _TEXT,
                },
                "required": ["title"],
                "additionalProperties": False,
            },
        ],
    },
    "defaults": {"$ref": "#/$defs/options", "description": "fio options of every job."},
    "volumes": {
        "type": "object",
        "description": "Role to target, for roles that --on does not name.",
        "propertyNames": _NAME,
        "additionalProperties": _TEXT,
    },
    "repeat": {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_REPEATS,
        "description": "How often the jobs run.",
    },
    "rounds": {
        "type": "object",
        "description": "Repeat the measured jobs until what is tracked is steady.",
        "properties": {
            "most": {"type": "integer", "minimum": LEAST_ROUNDS, "maximum": MOST_ROUNDS},
            "until": {"enum": [CRITERION]},
            "track": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "pattern": r"^[A-Za-z0-9_-]+\.(iops|bw|lat_mean)$"},
            },
        },
        "required": ["track"],
        "additionalProperties": False,
    },
    "order": {"enum": [order.value for order in Order]},
    "seed": {
        "type": ["integer", "null"],
        "minimum": 0,
        "maximum": MOST_SEED,
        "description": "Of order and offsets; drawn and recorded when left out.",
    },
    "sample": {**_NUMBER_TEXT, "description": "Between points of a series; 0 for none."},
    "device_sample": {
        **_NUMBER_TEXT,
        "description": "Between looks at the device's own counters; 0 for none.",
    },
    "latency_log": {
        **_BOOLEAN,
        "description": "Log how many I/Os took how long, at every point of a series.",
    },
    "cold_probe": {
        **_BOOLEAN,
        "description": "Read a sample of blocks twice before anything is measured.",
    },
    "start": {
        "enum": [start.value for start in Start],
        "description": "When the clients start each measured job.",
    },
    "stagger": {**_NUMBER_TEXT, "description": "Between the starts of two clients."},
    "clients": {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_CLIENTS,
        "description": "Processes that run the jobs side by side, spread over the hosts.",
    },
    "limits": {
        "anyOf": [
            {"$ref": "#/$defs/limits"},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/limits"}},
        ]
    },
    "jobs": _JOBS,
    "phases": {
        "type": "object",
        "properties": {phase.value: _JOBS for phase in Phase},
        "additionalProperties": False,
    },
}


_UNTIL: Schema = {
    "description": "End the job when its IOPS are steady; runtime is the deadline.",
    "anyOf": [
        {"enum": ["steady"]},
        {
            "type": "object",
            "properties": {
                "state": {"enum": ["steady"]},
                "window": {**_NUMBER_TEXT, "description": "That must be steady; 5m."},
                "block": {**_NUMBER_TEXT, "description": "Whose medians are judged; 10s."},
            },
            "additionalProperties": False,
        },
    ],
}


_OUTLAST: Schema = {
    "description": "Run longer than declared burst credits last; runtime is the least.",
    "anyOf": [
        {"enum": ["credits"]},
        {
            "type": "object",
            "properties": {
                "what": {"enum": ["credits"]},
                "margin": {**_NUMBER_TEXT, "description": "How many times as long; 1.3."},
                "most": {**_NUMBER_TEXT, "description": "And no longer than this; 3h."},
            },
            "additionalProperties": False,
        },
    ],
}


_WARMING: Schema = {
    "description": "Touch every block of the volume once, in extents.",
    "anyOf": [
        {"enum": [mode.value for mode in Warming]},
        {
            "type": "object",
            "properties": {
                "mode": {"enum": [mode.value for mode in Warming]},
                "extents": {"type": "integer", "minimum": 0, "maximum": MOST_EXTENTS},
                "auto": {**_BOOLEAN, "description": "Find out how many clones it needs."},
            },
            "required": ["mode"],
            "additionalProperties": False,
        },
    ],
}


def _job_properties(options: dict[str, Schema]) -> dict[str, Schema]:
    sections: Schema = {
        "type": "object",
        "description": "fio sections that run together in one process.",
        "propertyNames": _NAME,
        "additionalProperties": {
            "type": ["object", "null"],
            "properties": dict(options),
            "additionalProperties": False,
        },
    }
    known: dict[str, Schema] = {
        "role": {**_NAME, "description": "The volume it works on, such as data."},
        "note": {**_TEXT, "description": "A remark for the report."},
        "tool": {"enum": [tool.value for tool in Tool]},
        "limits": {"$ref": "#/$defs/limits"},
        "sections": sections,
        "until": _UNTIL,
        "pause_before": {
            **_NUMBER_TEXT,
            "description": "The volume is left alone so long before the job starts.",
        },
        "outlast": _OUTLAST,
        "warming": _WARMING,
    }
    return {name: known[name] for name in JOB_KEYS}


def _matrix(options: dict[str, Schema]) -> Schema:
    combination: Schema = {"type": "array", "items": {"$ref": "#/$defs/options"}}
    known: dict[str, Schema] = {
        "role": _NAME,
        "note": _TEXT,
        "name": {**_TEXT, "description": "Template of job names, such as {rw}-{bs}."},
        "exclude": combination,
        "include": combination,
    }
    lists: dict[str, Schema] = {
        name: {"type": "array", "items": schema, "minItems": 1} for name, schema in options.items()
    }
    return {
        "type": "object",
        "description": "A job for each combination of the lists.",
        "properties": lists | {name: known[name] for name in MATRIX_KEYS},
        "additionalProperties": False,
    }


def _option_properties(table: OptionTable) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for option in table.options.values():
        if option.name in OWN:
            continue
        for name in (option.name, *option.aliases):
            found[name] = _option_schema(option)
    return found


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


def _dd_properties(options: dict[str, Schema]) -> dict[str, Schema]:
    """Return the options only dd jobs have."""
    return {name: {"type": "string"} for name in DD_NAMES if name not in options}
