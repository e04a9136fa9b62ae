"""fio's own help texts in, option tables out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files

from volbench.errors import OutputError
from volbench.model.profile.fio_option import Option, OptionKind, OptionTable

Ask = Callable[[Sequence[str]], str]

_LISTED = re.compile(r"^ *([a-z0-9_]+) *: ?(.*)$")
_FIELD = re.compile(r"^ *(alias|type|default|range|valid values): *(.*)$")
_RANGE = re.compile(r"min=(-?\d+)(?:, max=(-?\d+))?")

_SIZES = frozenset(
    {
        *("size", "io_size", "filesize", "offset", "offset_increment", "offset_align", "bs", "ba"),
        *("zonesize", "zonerange", "zoneskip", "zonecapacity", "rate", "rate_min", "ramp_size"),
        *("buffer_compress_chunk", "verify_interval", "verify_offset", "log_compression"),
    }
)
"""Options whose numbers are bytes although fio calls some of them plain integers."""

_INTEGERS = frozenset({"number_ios", "randseed", "trim_backlog", "verify_backlog"})
"""Options that hold whole numbers although fio calls them texts."""

_MICROSECONDS = frozenset(
    {
        *("thinktime", "thinktime_spin", "thinktime_iotime"),
        *("latency_target", "latency_window", "max_latency"),
    }
)
"""Options whose bare number is a microsecond (fio HOWTO: "default unit is microseconds")."""

_OPEN_CHOICES = frozenset(["mem", "ss", "steadystate", "ioengine", "verify_pattern", "cmdprio"])
"""Options that list values but also take others, or values with parameters of another form."""


def parse_cmdhelp(text: str) -> Option:
    """Read what ``fio --cmdhelp=NAME`` or ``--enghelp=ENGINE,NAME`` prints.

    Raises:
        OutputError: it is no description of an option.
    """
    lines = text.splitlines()
    head = _LISTED.match(lines[0]) if lines else None
    if head is None:
        raise OutputError(
            f"fio's help can't be read: {text[:200]!r}", hint="check that this fio works"
        )
    fields: dict[str, str] = {}
    choices: list[str] = []
    current = ""
    for line in lines[1:]:
        if match := _FIELD.match(line):
            current = match.group(1)
            fields[current] = match.group(2).strip()
        rest = fields.get(current, "") if match else line.strip().removeprefix(":").strip()
        if current == "valid values" and rest:
            choices.append(rest.split()[0])
    return _option(head.group(1), head.group(2).strip(), fields, tuple(choices))


def _option(name: str, help_text: str, fields: dict[str, str], choices: tuple[str, ...]) -> Option:
    kind = _kind(name, fields.get("type", ""), choices)
    limits = _RANGE.search(fields.get("range", ""))
    low, high = limits.groups() if limits and kind is OptionKind.INTEGER else (None, None)
    alias = fields.get("alias", "")
    return Option(
        name=name,
        kind=kind,
        help=help_text,
        aliases=(alias,) if alias and alias != name else (),
        choices=choices if kind is OptionKind.CHOICE else (),
        minimum=None if low is None else int(low),
        maximum=None if high is None or int(high) < 0 else int(high),
    )


_BY_NAME: dict[str, OptionKind] = {
    **dict.fromkeys(_SIZES, OptionKind.SIZE),
    **dict.fromkeys(_INTEGERS, OptionKind.INTEGER),
    **dict.fromkeys(_MICROSECONDS, OptionKind.MICROSECONDS),
    "bssplit": OptionKind.BLOCK_SPLIT,
}

_BY_TYPE = (
    ("time postfix", OptionKind.DURATION),
    ("empty or boolean", OptionKind.FLAG),
    ("boolean", OptionKind.BOOLEAN),
    ("integer", OptionKind.INTEGER),
    ("floating", OptionKind.FLOATS),
    ("ranges", OptionKind.SIZE_RANGE),
)
"""A word of fio's type to the kind; the first that fits counts."""


def _kind(name: str, text: str, choices: tuple[str, ...]) -> OptionKind:
    """Return the kind of an option from its name and fio's word for its type."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if choices and name not in _OPEN_CHOICES:
        return OptionKind.CHOICE
    return next((kind for word, kind in _BY_TYPE if word in text), OptionKind.TEXT)


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names in what ``fio --cmdhelp=all`` prints."""
    matches = (_LISTED.match(line) for line in text.splitlines())
    return tuple(match.group(1) for match in matches if match)


def listed_engines(text: str) -> tuple[str, ...]:
    """Return the engines in what ``fio --enghelp`` prints."""
    return tuple(line.strip() for line in text.splitlines() if line.startswith("\t"))


@cache
def shipped_table() -> OptionTable:
    """Return the table that ships with volbench, for machines without fio."""
    content = json.loads(files("volbench.fio.jobs").joinpath("options.json").read_text("utf-8"))
    options = [_from_json(entry) for entry in content["options"]]
    return OptionTable(
        fio_version=content["fio_version"],
        options={option.name: option for option in options},
        engines=tuple(content["engines"]),
        source="shipped",
    )


def _from_json(entry: dict[str, object]) -> Option:
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    plain = {key: value for key, value in entry.items() if not isinstance(value, list)}
    kind = OptionKind(str(plain.pop("kind")))
    return Option(kind=kind, **plain, **lists)  # type: ignore[arg-type]  # keys are Option's own


def to_json(option: Option) -> dict[str, object]:
    """Return an option as the shipped table holds it: defaults left out."""
    empty: tuple[object, ...] = (None, "", ())
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(option).items()
        if value not in empty
    }


def installed_table(ask: Ask) -> OptionTable:
    """Return the options of an installed fio.

    What the shipped table knows is taken from there, so that only new options cost a call. Options
    of engines are the shipped ones, as far as the engine is installed.

    Args:
        ask: runs fio with arguments and returns its standard output.

    Raises:
        OutputError: the help of a new option can't be read.
    """
    shipped = shipped_table()
    names = listed_names(ask(["--cmdhelp=all"]))
    options = {
        name: shipped.options.get(name) or parse_cmdhelp(ask([f"--cmdhelp={name}"]))
        for name in names
    }
    engines = listed_engines(ask(["--enghelp"]))
    for option in shipped.options.values():
        if option.name not in options and {*engines}.intersection(option.engines):
            options[option.name] = option
    return OptionTable(
        fio_version=ask(["--version"]).strip().removeprefix("fio-"),
        options=options,
        engines=engines,
        source="installed",
    )
