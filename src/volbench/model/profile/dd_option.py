"""Options of a dd job; none of them is a path."""

from __future__ import annotations

from volbench.errors import InputError, did_you_mean
from volbench.model.profile.canonical import check_text
from volbench.units import parse_size

SOURCES = ("/dev/zero", "/dev/urandom")
FLAGS = ("direct", "dsync", "sync", "nonblock", "noatime", "fullblock")
CONVERSIONS = ("fsync", "fdatasync", "notrunc")
NAMES = ("if", "bs", "size", "oflag", "iflag", "conv", "rw")


def check_dd_option(name: str, raw: object) -> tuple[str, str]:
    """Return name and canonical value of an option of a dd job.

    Raises:
        InputError: unknown, or a value that dd or volbench cannot use.
    """
    if name not in NAMES:
        raise InputError(
            f"a dd job has no option {name!r}",
            hint=did_you_mean(name, NAMES, f"it has {', '.join(NAMES)}"),
        )
    if raw is None or isinstance(raw, list | dict | tuple | set | bool):
        raise InputError(f"{name} takes one value", hint="write a number or a text")
    text = check_text(str(raw).strip())
    if name in {"bs", "size"}:
        size = parse_size(text)
        if not size:
            raise InputError(f"{name} must be at least 1 byte", hint="write it like 1m")
        return name, str(size)
    choices = {"if": SOURCES, "conv": CONVERSIONS, "rw": ("read", "write")}.get(name, FLAGS)
    for part in text.split(","):
        if part not in choices:
            raise InputError(
                f"must be one of {', '.join(choices)}, not {part!r}",
                hint=did_you_mean(part, choices, "choose one of them"),
            )
    return name, text
