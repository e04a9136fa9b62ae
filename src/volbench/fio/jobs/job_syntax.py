"""Parser of job files into sections and options with their lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from volbench.errors import Problems

_LINE_LIMIT = 8191
_REPLACED = re.compile(r"\$\{[^}]*\}|\$(ncpus|mb_memory|pagesize)")


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
    words = name.split()
    if words and words[0] == "include":
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
