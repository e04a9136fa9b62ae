"""The names of declared limits in a profile, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from volbench.errors import InputError
from volbench.model.profile.profile_settings import Limits
from volbench.units import parse_rate, parse_size


@dataclass(frozen=True)
class LimitKey:
    """One key under ``limits``.

    Attributes:
        attribute: of `Limits`.
        read: text to a number above 0.
        base: the key it needs beside it, and must be above; empty for none.
        help: one sentence for editors.
    """

    attribute: str
    read: Callable[[str], float]
    help: str
    base: str = ""


def _count(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no number of I/Os", hint="write digits only, such as 1100"
        ) from None
    if not 0 < number < float("inf"):
        raise InputError(f"{text} is not above 0", hint="write a number like 1100")
    return number


def _rate(text: str) -> float:
    rate = parse_rate(text)
    if rate <= 0:
        raise InputError(f"{text} is not above 0", hint="write it like 125MB/s")
    return rate


def _size(text: str) -> float:
    size = parse_size(text)
    if size <= 0:
        raise InputError(f"{text} is not above 0", hint="write it like 3g")
    return float(size)


LIMIT_KEYS: Mapping[str, LimitKey] = {
    "iops": LimitKey("iops", _count, "I/O operations a second, sustained."),
    "bandwidth": LimitKey(
        "bandwidth_bytes_per_s", _rate, "Such as 125MB/s or 120MiB/s, sustained."
    ),
    "burst_iops": LimitKey(
        "burst_iops", _count, "I/O operations a second while credits last.", base="iops"
    ),
    "burst_ios": LimitKey(
        "burst_ios", _count, "Credits of a full bucket, in I/Os, such as 5400000.", base="iops"
    ),
    "burst_bandwidth": LimitKey(
        "burst_bandwidth_bytes_per_s",
        _rate,
        "Bytes a second while credits last.",
        base="bandwidth",
    ),
    "burst_bytes": LimitKey(
        "burst_bytes", _size, "Credits of a full bucket, in bytes.", base="bandwidth"
    ),
}
"""Every key, in the order of the documentation."""

_ABOVE_BASE = ("burst_iops", "burst_bandwidth")


def limit_problem(limits: Limits) -> tuple[str, str] | None:
    """Return key and reason of a burst that can't be: without its base, or not above it."""
    for name, key in LIMIT_KEYS.items():
        value = getattr(limits, key.attribute)
        if value is None or not key.base:
            continue
        base = getattr(limits, LIMIT_KEYS[key.base].attribute)
        if base is None:
            return name, f"{name} needs {key.base}: credits refill at the sustained rate"
        if name in _ABOVE_BASE and value <= base:
            return name, f"{name} must be above {key.base}"
    return None


def limits_schema() -> dict[str, object]:
    """Return the JSON Schema of the limits of one role: a volume type, or a mapping."""
    number: dict[str, object] = {"type": ["string", "number"]}
    properties: dict[str, object] = {
        name: {**number, "description": key.help} for name, key in LIMIT_KEYS.items()
    }
    properties |= {
        "type": {"type": "string", "description": "A volume type, such as aws/gp3."},
        "size": {**number, "description": "Of the volume; with a type."},
        "name": {"type": "string", "description": "What a volume of these limits is called."},
    }
    return {
        "description": "What the provider promises; drawn as lines and judged against.",
        "anyOf": [
            {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9._-]*/"},
            {"type": "object", "properties": properties, "additionalProperties": False},
        ],
    }
