"""Option values of job files as fio reads them, in canonical form.

fio's parser takes the leading digits of a value and the letters directly after them, and silently
ignores the rest (``parse.c``, the same in 3.33 and 3.42): ``1.5g`` is 1, ``4KiB`` is 4000, ``1min``
is a microsecond, and a blank before the digits hides the suffix. An import keeps what fio does and
reports where that is probably not what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.errors import InputError, Problems
from volbench.model.profile.fio_options import TRIPLES, Option, OptionKind, canonical, check_digits

_DECIMAL = re.compile(r"\s*[+-]?[0-9]+")
_HEX = re.compile(r"\s*[+-]?(0x)?[0-9a-f]+", re.IGNORECASE)
_LEADING = re.compile(r"[+-]?\d*")
_KEPT = re.compile(r"\d+[%z]")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_EXACT_US = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_TRIMMED = frozenset({"filename", "description"})
_SHARES = frozenset({"zone_reset_frequency", "zone_reset_threshold"})
_SHARE = re.compile(r"\s*(0?\.\d+|0|1)(\.0*)?")

_LINE_LIMIT = 8191
_REPLACED = re.compile(r"\$\{[^}]*\}|\$(ncpus|mb_memory|pagesize)")
_ENGINES_WITHOUT_FILES = frozenset({"null", "cpuio"})


@dataclass(frozen=True)
class AsRead:
    """A value as fio reads it."""

    value: str  # canonical
    surprise: str = ""  # how fio's reading differs from the obvious one; empty when it does not


def read_value(option: Option, text: str | None, *, kb_base: int = 1024) -> AsRead:
    """Return the canonical value of an option in a job file.

    Args:
        text: after the ``=``, with leading blanks, which matter; None for an option without value.
        kb_base: 1024 or 1000, the value of the option of that name.
    """
    if text is None:
        if option.kind is OptionKind.FLAG:
            return AsRead("1")
        raise InputError(f"{option.name} has no value", hint="write option=value")
    if text.strip().startswith("("):
        hint = "write the result"
        raise InputError("arithmetic is not supported by many builds of fio", hint=hint)
    check_digits(option, text)
    value = _fio_value(option, text, kb_base)
    unit = " us" if option.kind is OptionKind.MICROSECONDS else ""
    surprise = f"fio reads {option.name}={text} as {value}{unit}"
    return AsRead(value, "" if _is_plain(option, text, value) else surprise)


def _is_plain(option: Option, text: str, value: str) -> bool:
    if option.kind in {OptionKind.TEXT, OptionKind.CHOICE, OptionKind.FLOATS}:
        return True
    try:
        return canonical(option, text) == value
    except InputError:
        return False


def _fio_value(option: Option, text: str, kb_base: int) -> str:
    match option.kind:
        case OptionKind.SIZE | OptionKind.INTEGER:
            parts = _directions(text) if option.name in TRIPLES else [text]
            amount = _amount if option.kind is OptionKind.SIZE else _count
            value = ",".join(amount(part, kb_base) if part else "" for part in parts)
        case OptionKind.SIZE_RANGE:
            value = ",".join(_range(part, kb_base) for part in text.split(","))
        case OptionKind.BLOCK_SPLIT:
            value = ",".join(_split(part, kb_base) if part else "" for part in text.split(","))
        case OptionKind.DURATION:
            seconds = _microseconds(text, bare_us=1_000_000) / 1_000_000
            value = canonical(option, f"{seconds:f}s")
        case OptionKind.MICROSECONDS:
            value = str(_microseconds(text, bare_us=1))
        case OptionKind.FLOATS if option.name in _SHARES and not _SHARE.fullmatch(text):
            raise InputError(f"{text!r} is not a share to fio", hint="write 0 to 1")
        case OptionKind.BOOLEAN:
            value = str(_whole_number(text))
        case OptionKind.FLAG:
            value = "1" if _whole_number(text) else "0"
        case _:
            if text != (text.rstrip() if option.name in _TRIMMED else text.strip()):
                blank = "fio takes blanks at the start as part of the value, and none at the end"
                raise InputError(blank, hint="remove them")
            value = text.strip()
    return value


def _directions(text: str) -> list[str]:
    """Return the values for reads, writes and trims; an empty one is not set by this option.

    fio separates each at the first comma, else colon, else dash (``handle_option`` in its
    ``parse.c``): ``bs=4k-32k`` is reads of 4k, and writes and trims of 32k.
    """
    parts, rest = [], text
    for sign in (",", ":", "-"):
        while sign in rest:
            part, _, rest = rest.partition(sign)
            parts.append(part)
    return [*parts, rest][:3]


def _whole_number(text: str) -> int:
    # A 0x anywhere makes fio read hexadecimal digits: 600x is 0x600.
    is_hex = "0x" in text.lower()
    match = (_HEX if is_hex else _DECIMAL).match(text)
    if match is None:
        raise InputError(f"{text!r} is not a number to fio", hint="write digits")
    return int(match.group(), 16 if is_hex else 10)


def _letters(text: str) -> str:
    """Return the text after the leading digits, in lower case; a leading blank is not a digit."""
    return _LEADING.sub("", text, count=1).lower()


def _bytes(text: str, kb_base: int) -> int:
    letters = _letters(text)
    other = 1000 if kb_base == 1024 else 1024
    base = other if letters[1:3] == "ib" else kb_base
    return _whole_number(text) * int(base ** _POWERS.get(letters[:1], 0))


def _amount(text: str, kb_base: int) -> str:
    return text if _KEPT.fullmatch(text) else str(_bytes(text, kb_base))


def _count(text: str, kb_base: int) -> str:
    if "%" in text:  # 3.33 refuses iodepth=10%, and only reads with rwmixwrite=10%
        raise InputError(f"fio does not read {text!r} as a count", hint="leave out the %")
    return str(_bytes(text, kb_base))


def _range(text: str, kb_base: int) -> str:
    low, sign, high = text.partition("-" if "-" in text else ":")
    if not sign:
        raise InputError(f"{text!r} is not a range", hint="write it like 4k-64k")
    return "-".join(str(end) for end in sorted((_bytes(low, kb_base), _bytes(high, kb_base))))


def _split(text: str, kb_base: int) -> str:
    entries = (entry.partition("/") for entry in text.split(":"))
    return ":".join(f"{_bytes(size, kb_base)}{sign}{share}" for size, sign, share in entries)


def _microseconds(text: str, *, bare_us: int) -> int:
    number, letters = _whole_number(text), _letters(text)
    if number < 0:
        raise InputError(f"{text!r} is negative", hint="write 0 or more")
    if "-" in text.strip():
        raise InputError("a range of times cannot be kept", hint="write a single time")
    if not letters[:1].isalpha():
        return number * bare_us
    return number * (1000 if letters.startswith("ms") else _EXACT_US.get(letters, 1))


@dataclass(frozen=True)
class Setting:
    """One option of the file."""

    name: str  # as written, stripped
    value: str | None  # text after ``=``, without trailing blanks; None for an option without value
    line: int  # 1-based


@dataclass
class SectionText:
    """One section of the file."""

    name: str  # text between the brackets
    line: int  # of the header
    settings: list[Setting] = field(default_factory=list)  # in file order
    is_typed: bool = False  # on a command line, where fio reads each option in its place

    def in_order(self) -> list[Setting]:
        """Return the settings as fio reads them: in a file kb_base first, and filename last.

        A command line needs the ioengine before its own options.
        """
        places = {"kb_base": 0, "ioengine": 0, "filename": 2}
        return sorted(
            self.settings, key=lambda each: 1 if self.is_typed else places.get(each.name, 1)
        )

    @property
    def is_global(self) -> bool:
        """Whether it only sets defaults, as for fio any name that starts with ``global``."""
        return self.name.startswith("global")


def split_sections(text: str, problems: Problems, notices: list[str]) -> list[SectionText]:
    """Return the sections of a job file in order.

    As in fio, ``#`` and ``;`` start a comment anywhere in a line, even within a value.
    """
    sections: list[SectionText] = []
    if text.startswith("\ufeff"):
        problems.add("the file begins with a byte order mark; fio rejects it", line=1)
        text = text[1:]
    for number, whole in enumerate(text.split("\n"), start=1):
        if len(whole.encode()) > _LINE_LIMIT:
            problems.add(f"longer than the {_LINE_LIMIT} bytes fio reads", line=number)
            continue
        kept = re.split(r"[#;]", whole, maxsplit=1)[0]
        line = kept.strip()
        if line.startswith("["):
            sections.append(SectionText(_header(line, number, problems), number))
        elif line and not sections:
            problems.add(
                "an option before the first section; fio rejects it",
                line=number,
                hint="put it under [global]",
            )
        elif line:
            _add_setting(sections[-1], line, number, problems)
            if kept != whole and kept == kept.rstrip():
                notices.append(
                    f"{problems.path}:{number}: fio ends the line at {whole[len(kept)]!r}"
                    f" and reads {line!r}"
                )
    return sections


def _header(line: str, number: int, problems: Problems) -> str:
    """Return the name between the brackets; fio drops the last character, whatever it is."""
    name = line[1:].removesuffix("]")
    if not line.endswith("]") or not name or "]" in name or name != name.strip():
        problems.add(
            f"{line!r} is not a proper section header",
            line=number,
            hint="write it like [job1], without comment signs or blanks at its ends",
        )
    return name.partition("]")[0]


def _add_setting(section: SectionText, line: str, number: int, problems: Problems) -> None:
    name, equals, value = line.partition("=")
    fields = name.split()
    if fields and fields[0] == "include":
        problems.add(
            "include is not allowed: it reads another file",
            line=number,
            key="include",
            hint="copy its content into this file",
        )
        return
    if replaced := _REPLACED.search(value):
        problems.add(
            f"{replaced.group()} is substituted by fio at run time",
            line=number,
            key=name.strip(),
            hint="write the value itself",
        )
        return
    section.settings.append(Setting(name.strip(), value if equals else None, number))


@dataclass(frozen=True)
class Place:
    """Target of a section."""

    target: str  # of the volume; empty when the engine touches none
    # plain names inside a directory volume; None for fio's own names or a device
    filename: str | None = None


def find_place(options: dict[str, str], *, is_placed: bool = False) -> Place:
    """Return the volume of a section.

    Args:
        options: as fio reads them; ``filename``, ``directory`` and ``uri`` are used.
        is_placed: whether another volume replaces it; only names of files are kept.
    """
    if options.get("ioengine") == "nbd" and "uri" in options:
        return Place(options["uri"])
    if options.get("ioengine") in _ENGINES_WITHOUT_FILES:
        return Place("")
    paths = split_colons(options.get("filename", ""))
    has_device = any(map(is_device, paths))
    if is_placed and (has_device or not paths):
        return Place("")
    folders = split_colons(options.get("directory", ""))
    if not paths and len(folders) < 2:
        return Place(_as_folder(folders[0] if folders else "."))
    if len(folders) > 1 and not paths:  # a file is in the first of them
        hint = "give each directory a job of its own: they run at the same time"
        raise InputError("its jobs are in several directories", hint=hint)
    parents = {str(PurePosixPath(path).parent) for path in paths}
    if has_device or (len(parents) > 1 and not is_placed):
        return Place(_joined_paths(paths))
    names = [PurePosixPath(path).name for path in paths]
    if any(":" in name for name in names):
        raise InputError("a file name with a colon cannot be kept", hint="rename the file")
    if {"..", "-"} & {*names}:  # fio takes - as standard input or output
        raise InputError("a file cannot be called .. or -", hint="name a file")
    return Place("" if is_placed else _as_folder(parents.pop()), ":".join(names))


def _joined_paths(paths: list[str]) -> str:
    """Return the target of a job on several devices or files, each with a slash before its name."""
    if len({*map(is_device, paths)}) > 1:
        hint = "give the files a job of their own: they run at the same time"
        raise InputError("a job works on devices or on files, not on both", hint=hint)
    if len({*paths}) < len(paths):
        raise InputError("a device or file is named twice", hint="name it once")
    return ":".join(path if not paths[1:] or path[0] in "./" else f"./{path}" for path in paths)


def added_files(before: str, names: str, directory: str) -> str:
    """Return the files of a section with those of one more ``filename``: fio uses all of them.

    fio puts a directory before any filename, even an absolute one, if it was set before.
    """
    folder = f"{split_colons(directory)[0]}/" if directory else ""
    parts = [part for part in re.split(r"(?<!\\):", names) if part]
    return ":".join([*filter(None, [before]), *(f"{folder}{part}" for part in parts)])


def _as_folder(path: str) -> str:
    """Return a folder with a slash at its end, so that it is not taken for a file."""
    return path if path == "." else f"{path.rstrip('/')}/"


def split_colons(text: str) -> list[str]:
    r"""Split at colons as fio does: ``\:`` stands for a colon itself."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text) if part]


def is_device(path: str) -> bool:
    """Return whether a path means a device: everything in /dev except shared memory."""
    pure_path = PurePosixPath(path)
    return pure_path.is_relative_to("/dev") and not pure_path.is_relative_to("/dev/shm")  # noqa: S108 - only compared
