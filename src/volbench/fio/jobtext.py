"""A fio job file's text in; its sections and options, each with its line, out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from volbench.errors import Problems

_LINE_LIMIT = 8191
_REPLACED = re.compile(r"\$\{[^}]*\}|\$(ncpus|mb_memory|pagesize)")


@dataclass(frozen=True)
class Setting:
    """One option as it stands in the file.

    Attributes:
        name: as written, blanks around it taken away.
        value: text behind ``=``, blanks at its end taken away; None for a bare flag.
        line: 1-based.
    """

    name: str
    value: str | None
    line: int


@dataclass
class SectionText:
    """One section as it stands in the file.

    Attributes:
        name: text between the brackets.
        line: of the header.
        settings: in file order.
    """

    name: str
    line: int
    settings: list[Setting] = field(default_factory=list)

    @property
    def is_global(self) -> bool:
        """Whether it only sets defaults: fio takes any name that starts with ``global`` so."""
        return self.name.startswith("global")


def split_sections(text: str, problems: Problems) -> list[SectionText]:
    """Return the sections of a job file in order.

    ``#`` and ``;`` start a comment anywhere in a line, also in a value, as fio reads them. What fio
    would read in another way than it looks becomes a problem.
    """
    sections: list[SectionText] = []
    if text.startswith("\ufeff"):
        problems.add("the file begins with a byte order mark; fio refuses it", line=1)
        text = text[1:]
    for number, whole in enumerate(text.split("\n"), start=1):
        if len(whole.encode()) > _LINE_LIMIT:
            problems.add(f"longer than the {_LINE_LIMIT} bytes fio reads", line=number)
            continue
        line = re.split(r"[#;]", whole, maxsplit=1)[0].strip()
        if len(line) < len(whole.strip()) and line.startswith("[") and "]" not in line:
            problems.add("a comment sign cuts this section's name", line=number)
        elif line.startswith("["):
            sections.append(SectionText(line[1:].partition("]")[0], number))
        elif line and not sections:
            problems.add(
                "stands before the first section; fio refuses it",
                line=number,
                hint="put it under [global]",
            )
        elif line:
            _add_setting(sections[-1], line, number, problems)
    return sections


def _add_setting(section: SectionText, line: str, number: int, problems: Problems) -> None:
    name, equals, value = line.partition("=")
    words = name.split()
    if words and words[0] == "include":
        problems.add(
            "include is refused: it reads another file",
            line=number,
            key="include",
            hint="write what it holds into this file",
        )
        return
    if replaced := _REPLACED.search(value):
        problems.add(
            f"{replaced.group()} is replaced by fio when it runs",
            line=number,
            key=name.strip(),
            hint="write the value itself",
        )
        return
    section.settings.append(Setting(name.strip(), value if equals else None, number))
