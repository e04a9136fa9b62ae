"""Tables of fio's options: the shipped table, and the table of an installed fio from its help."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files

from volbench.errors import OutputError
from volbench.model.profile.fio_options import Option, OptionKind, OptionTable

# Runs one process of fio for each argument, side by side, and returns what each prints
Ask = Callable[[Sequence[str]], Sequence[str]]

_LISTED = re.compile(r"^ *([a-z0-9_-]+) *: ?(.*)$")
# Options that ``--cmdhelp=all`` leaves out; fio has them since 2.1
UNLISTED = ("bs_is_seq_rand", "iomem_align", "softrandommap", "verify_async_cpus")
_FIELD = re.compile(r"^ *(alias|type|default|range|valid values): *(.*)$")
_RANGE = re.compile(r"min=(-?\d+)(?:, max=(-?\d+))?")

# Options whose values are bytes, although fio calls some of them plain integers
_SIZES = frozenset(
    {
        *("size", "io_size", "filesize", "offset", "offset_increment", "offset_align", "bs", "ba"),
        *("zonesize", "zonerange", "zoneskip", "zonecapacity", "rate", "rate_min", "ramp_size"),
        *("buffer_compress_chunk", "verify_interval", "verify_offset", "log_compression"),
        *("lockmem", "hugepage-size", "iomem_align"),
    }
)

# Options that take integers although fio calls them strings
_INTEGERS = frozenset({"number_ios", "randseed", "trim_backlog", "verify_backlog"})

# Options whose default unit is a microsecond (fio HOWTO)
_MICROSECONDS = frozenset(
    {*("thinktime", "thinktime_spin", "latency_target", "latency_window", "max_latency")}
)

# Options that list values but accept others too, or values with parameters
_OPEN_CHOICES = frozenset(["mem", "ss", "steadystate", "ioengine", "verify_pattern", "cmdprio"])

_BY_NAME: dict[str, OptionKind] = {
    **dict.fromkeys(_SIZES, OptionKind.SIZE),
    **dict.fromkeys(_INTEGERS, OptionKind.INTEGER),
    **dict.fromkeys(_MICROSECONDS, OptionKind.MICROSECONDS),
    "bssplit": OptionKind.BLOCK_SPLIT,
    "thinktime_iotime": OptionKind.DURATION,  # unlike thinktime: a bare number is seconds (3.33)
}
# Text in fio's type to the kind; the first match counts
_BY_TYPE = (
    ("time postfix", OptionKind.DURATION),
    ("empty or boolean", OptionKind.FLAG),
    ("boolean", OptionKind.BOOLEAN),
    ("integer", OptionKind.INTEGER),
    ("floating", OptionKind.FLOATS),
    ("ranges", OptionKind.SIZE_RANGE),
)


def parse_cmdhelp(text: str) -> Option:
    """Return the option that ``fio --cmdhelp=NAME`` or ``--enghelp=ENGINE,NAME`` describes."""
    lines = text.splitlines()
    head = _LISTED.match(lines[0]) if lines else None
    if head is None:
        raise OutputError(
            f"fio's help cannot be parsed: {text[:200]!r}", hint="check that this fio works"
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
    kind = _option_kind(name, fields.get("type", ""), choices)
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


def _option_kind(name: str, text: str, choices: tuple[str, ...]) -> OptionKind:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if choices and name not in _OPEN_CHOICES:
        return OptionKind.CHOICE
    return next((kind for word, kind in _BY_TYPE if word in text), OptionKind.TEXT)


def listed_names(text: str) -> tuple[str, ...]:
    """Return the names in the output of ``fio --cmdhelp=all``."""
    matches = (_LISTED.match(line) for line in text.splitlines())
    return tuple(match.group(1) for match in matches if match)


@cache
def shipped_table() -> OptionTable:
    """Return the table shipped with volbench, for machines without fio."""
    content = json.loads(files("volbench.fio.jobs").joinpath("options.json").read_text("utf-8"))
    options = [_from_json(entry) for entry in content["options"]]
    return OptionTable(
        fio_version=content["fio_version"],
        options={option.name: option for option in options},
        engines=tuple(content["engines"]),
        source="shipped",
        releases=content["releases"],
        own=content["own"],
        withdrawn=tuple(content["withdrawn"]),
    )


def _from_json(entry: dict[str, object]) -> Option:
    lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
    plain = {key: value for key, value in entry.items() if not isinstance(value, list)}
    kind = OptionKind(str(plain.pop("kind")))
    return Option(kind=kind, **plain, **lists)  # type: ignore[arg-type]  # keys are Option's own


def to_json(option: Option) -> dict[str, object]:
    """Return an option as stored in the shipped table, without defaults."""
    empty: tuple[object, ...] = (None, "", ())
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(option).items()
        if value not in empty
    }


def installed_table(ask: Ask) -> OptionTable:
    """Return the options of an installed fio.

    Options that the shipped table knows are taken from it, so that only new ones cost a call of
    fio. Options of engines are the shipped ones, if the engine is installed.
    """
    shipped = shipped_table()
    listing, engine_help, version = ask(["--cmdhelp=all", "--enghelp", "--version"])
    names = (*listed_names(listing), *UNLISTED)
    new = [name for name in names if name not in shipped.options]
    described = dict(zip(new, ask([f"--cmdhelp={name}" for name in new]), strict=True))
    options = {
        name: parse_cmdhelp(described[name]) if name in described else shipped.options[name]
        for name in names
    }
    engines = tuple(line.strip() for line in engine_help.splitlines() if line.startswith("\t"))
    for option in shipped.options.values():
        if option.name not in options and {*engines}.intersection(option.engines):
            options[option.name] = option

    @cache
    def look_up(name: str) -> Option | None:
        try:
            is_name = re.fullmatch("[a-z0-9_-]+", name)
            return parse_cmdhelp(*ask([f"--cmdhelp={name}"])) if is_name else None
        except OutputError:
            return None

    return replace(
        shipped,
        fio_version=version.strip().removeprefix("fio-"),
        options=options,
        engines=engines,
        source="installed",
        look_up=look_up,
    )
