"""fio options with their kinds, and canonical values of fio options.

fio parses values laxly: ``1.5g`` is 1 byte, ``1min`` a microsecond, ``4KiB`` 4000 bytes (fio 3.33,
and the same code in 3.42). Here they have their usual meaning and become plain integers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from volbench.errors import InputError, did_you_mean
from volbench.units import parse_duration, parse_size

_FORBIDDEN = re.compile(r"[#;\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SUBSTITUTED = re.compile(r"\$\{|\$(ncpus|mb_memory|pagesize)")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_PERCENT = re.compile(r"\d+%")
_ZONES = re.compile(r"\d+z")
# Options that also accept a percentage of the file (``50%``) or zones (``4z``)
_SHARES = frozenset({"size", "io_size", "offset", "offset_increment", "zoneskip"})
# Options with separate values for reads, writes and trims (fio HOWTO, "comma-separated")
TRIPLES = frozenset(
    {
        *("bs", "ba", "bsrange", "bssplit", "rate", "rate_min", "rate_iops", "rate_iops_min"),
        *("percentage_random", "cmdprio", "cmdprio_class", "cmdprio_percentage"),
    }
)
_MAX_INT = 2**31 - 1
_MAX_INT64 = 2**63 - 1
_LONG = re.compile(r"[0-9a-f]{25}(?=[0-9a-f])", re.IGNORECASE)
# 64-bit integers; fio silently truncates all others to 32 bits (nrfiles=4294967297 is 1)
_INT64_OPTIONS = frozenset({"number_ios", "randseed", "cpumask", "verify_backlog"})


class OptionKind(StrEnum):
    """Type of the value of an option."""

    SIZE = "size"  # bytes, or a percentage; up to three, separated by commas
    SIZE_RANGE = "size-range"  # bytes low-high, up to three
    BLOCK_SPLIT = "block-split"  # bytes/percent pairs separated by colons
    DURATION = "duration"  # a bare number is seconds
    MICROSECONDS = "microseconds"  # a bare number is microseconds, as in fio
    INTEGER = "integer"  # up to three, separated by commas
    BOOLEAN = "boolean"
    FLAG = "flag"  # may be written without a value in a job file
    FLOATS = "floats"  # numbers separated by colons
    CHOICE = "choice"  # one of `choices`, optionally with a parameter after a colon
    TEXT = "text"


@dataclass(frozen=True)
class Option:
    """An option of fio."""

    name: str  # fio's canonical name
    kind: OptionKind  # type of its value
    help: str = ""  # fio's own one-line description
    aliases: tuple[str, ...] = ()  # other names that fio accepts
    choices: tuple[str, ...] = ()  # the values of a CHOICE; empty otherwise
    minimum: int | None = None  # minimum integer value; None when unlimited
    maximum: int | None = None  # maximum integer value; None when unlimited
    engines: tuple[str, ...] = ()  # ioengines that provide it; empty for a general option


@dataclass(frozen=True)
class OptionTable:
    """All options of a fio version."""

    fio_version: str  # such as ``3.33``
    options: Mapping[str, Option]  # canonical name to Option
    engines: tuple[str, ...]  # ioengines of this fio
    source: str  # ``shipped`` or ``installed``
    # option to the first release of fio that has it, for options newer than the shipped table
    releases: Mapping[str, str] = field(default_factory=dict)
    # fio's own option, such as readonly, to its letter, with a colon for an argument (getopt)
    own: Mapping[str, str] = field(default_factory=dict)
    # long options that fio knows and does not take; ``size=`` for a second one of that name
    withdrawn: tuple[str, ...] = ()
    look_up: Callable[[str], Option | None] = lambda _name: None  # asks fio; it has the last word

    def find(self, name: str) -> Option | None:
        """Return an option by its name or an alias; one that is not listed if fio has it."""
        aliased = (option for option in self.options.values() if name in option.aliases)
        return self.options.get(name) or next(aliased, None) or self.look_up(name)

    def names(self) -> list[str]:
        """Return all names and aliases."""
        return [*self.options, *(a for option in self.options.values() for a in option.aliases)]


def check_text(value: str) -> str:
    """Return a text unchanged if fio interprets it literally."""
    if match := _FORBIDDEN.search(value):
        raise InputError(
            f"{value!r} contains {match.group()!r}, which would truncate the line in a job file",
            hint="leave out #, ;, line ends and control characters",
        )
    if match := _SUBSTITUTED.search(value):
        raise InputError(
            f"{value!r} contains {match.group()}, which fio would replace",
            hint="write the value itself",
        )
    if value != value.strip():
        raise InputError(f"{value!r} begins or ends with a blank", hint="remove it")
    return value


def check_digits(option: Option, text: str) -> None:
    """Refuse foreign digits, and more digits than any number of fio has, in all but texts."""
    if option.kind is not OptionKind.TEXT and not text.isascii():
        raise InputError(
            f"{option.name}: {text!r} contains letters or digits that fio cannot parse",
            hint="write it with the digits 0 to 9 and plain letters",
        )
    if option.kind is not OptionKind.TEXT and (long := _LONG.search(text)):
        problem = f"{option.name}: {long.group()}... is too large a number"
        raise InputError(problem, hint="fio takes up to 8191p")


def canonical(option: Option, raw: object) -> str:
    """Return the value of an option as written to a job file."""
    if raw is None or isinstance(raw, list | dict | tuple | set):
        raise InputError(f"{option.name} takes one value", hint="write a number or a text")
    text = ("1" if raw else "0") if isinstance(raw, bool) else str(raw).strip()
    if not text:
        raise InputError(f"{option.name} has no value", hint="write one, or null to remove it")
    check_text(text)
    check_digits(option, text)
    try:
        return _READERS[option.kind](option, text)
    except InputError as error:
        raise InputError(f"{option.name}: {error.message}", hint=error.hint) from error


def _size(option: Option, text: str) -> str:
    if text.endswith(("%", "z")) and option.name not in _SHARES:
        raise InputError(f"{text!r} is not a size", hint="write it like 4k or 4096")
    if text.endswith("%") and not _PERCENT.fullmatch(text):
        raise InputError(f"{text!r} is not a whole percentage", hint="fio would drop the fraction")
    # fio interprets percentages above 100 as a size near 2**64.
    least = 1 if option.name in {"size", "io_size"} else 0
    if text.endswith("%") and not least <= float(text[:-1]) <= 100:
        raise InputError(f"{text!r} is out of range", hint=f"it goes from {least}% to 100%")
    return text if text.endswith("%") or _ZONES.fullmatch(text) else str(parse_size(text))


def _up_to_three(option: Option, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    each = f"; in a profile, {option.name}: [{', '.join(parts)}] is a job for each"
    most, takes = (3, "read,write,trim") if option.name in TRIPLES else (1, "one")
    if len(parts) > most:
        hint = f"{option.name} takes {takes}{each}"
        raise InputError(f"{text!r} has {len(parts)} values", hint=hint)
    return parts


def _size_ranges(option: Option, text: str) -> str:
    ranges = []
    for size_range in _up_to_three(option, text):
        low, dash, high = size_range.partition("-")
        if not dash:
            raise InputError(f"{size_range!r} is not a range", hint="write it like 4k-64k")
        ranges.append(f"{parse_size(low)}-{parse_size(high)}")
    return ",".join(ranges)


def _block_split(text: str) -> str:
    entries, total, open_shares = [], 0, 0
    for entry in text.split(":") if text else ():
        size, slash, share = entry.partition("/")
        if share and not share.isdecimal():
            raise InputError(f"{entry!r} needs a whole percentage", hint="write it like 4k/60")
        entries.append(f"{parse_size(size)}{slash}{share}")
        total += int(share or 0)
        open_shares += not share
    if text and (total > 100 or (total < 100 and not open_shares)):
        raise InputError(f"{text!r} adds up to {total} %", hint="the shares must add up to 100")
    return ":".join(entries)


def render_duration(seconds: float) -> str:
    """Return a duration in an unambiguous form for fio: whole seconds, else whole ms or us."""
    microseconds = round(seconds * 1_000_000)
    # Floats of six decimals are exact enough for durations of years.
    if abs(seconds * 1_000_000 - microseconds) > 1e-2:
        raise InputError(f"{seconds} s is not a whole number of microseconds", hint="round it")
    for factor, unit in ((1_000_000, "s"), (1_000, "ms")):
        if microseconds % factor == 0:
            return f"{microseconds // factor}{unit}"
    return f"{microseconds}us"


def _microseconds(_option: Option, text: str) -> str:
    if text.isdecimal():
        return text
    value = parse_duration(text) * 1_000_000
    if text[-1].isdecimal() or abs(value - round(value)) > 1e-3:
        problem = f"{text!r} is not an integer number of microseconds"
        raise InputError(problem, hint="write it like 100us")
    return str(round(value))


def _integers(option: Option, text: str) -> str:
    return ",".join(number and _integer(option, number) for number in _up_to_three(option, text))


def _integer(option: Option, text: str) -> str:
    if not re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", text):
        raise InputError(f"must be an integer, not {text!r}", hint="write digits only, such as 16")
    high = _MAX_INT64 if option.name in _INT64_OPTIONS else _MAX_INT
    high = high if option.maximum is None else option.maximum
    low = -high - 1 if option.minimum is None else option.minimum
    number = int(text, 16 if "x" in text else 10)
    if not low <= number <= high:
        raise InputError(f"{text} is out of range", hint=f"it goes from {low} to {high}")
    return str(number)


def _boolean(_option: Option, text: str) -> str:
    if text.lower() not in _TRUE | _FALSE:
        raise InputError(f"{text!r} is not true or false", hint="write 1 or 0")
    return "1" if text.lower() in _TRUE else "0"


def _floats(option: Option, text: str) -> str:
    parts = text.split(":")
    for number in parts:
        if not re.fullmatch(r"\d+(\.\d+)?", number):
            raise InputError(f"{number!r} is not a number", hint="write numbers like 50:99:99.9")
    if option.name == "percentile_list":
        if len(parts) > 20:
            raise InputError(f"{len(parts)} percentiles; fio keeps 20", hint="leave some out")
        if any(not 0 < float(number) <= 100 for number in parts):
            raise InputError(
                "percentiles must be above 0 and at most 100", hint="a 0 ends fio's list"
            )
    return text


def _choice(option: Option, text: str) -> str:
    if text.partition(":")[0] in option.choices:
        return text
    # a misspelt read is never answered with a pattern that writes or trims
    near = [name for name in option.choices if all(w in text or w not in name for w in ("w", "tr"))]
    near = near if option.name == "rw" else [*option.choices]
    alike = [name for name in near if name[:4] == text[:4]]  # random means randread
    hint = f"did you mean `{alike[0]}`?" if len(alike) == 1 else ""
    raise InputError(
        f"must be one of {', '.join(option.choices)}, not {text!r}",
        hint=hint or did_you_mean(text.partition(":")[0], near, "choose one of them"),
    )


_READERS: dict[OptionKind, Callable[[Option, str], str]] = {
    OptionKind.SIZE: lambda option, text: ",".join(
        _size(option, size) if size else "" for size in _up_to_three(option, text)
    ),
    OptionKind.SIZE_RANGE: _size_ranges,
    OptionKind.BLOCK_SPLIT: lambda option, text: ",".join(
        map(_block_split, _up_to_three(option, text))
    ),
    OptionKind.DURATION: lambda _, text: render_duration(parse_duration(text)),
    OptionKind.MICROSECONDS: _microseconds,
    OptionKind.INTEGER: _integers,
    OptionKind.BOOLEAN: _boolean,
    OptionKind.FLAG: _boolean,
    OptionKind.FLOATS: _floats,
    OptionKind.CHOICE: _choice,
    OptionKind.TEXT: lambda _, text: text,
}
