"""Typed access to a document's values; whatever does not fit becomes a problem with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from volbench.errors import InputError, Problems
from volbench.model.canonical import check_option
from volbench.model.ddoption import check_dd_option
from volbench.model.option import OptionTable, nearest
from volbench.model.profile import Limits, Options
from volbench.plan.document import Entry, Node
from volbench.plan.limits import LIMIT_KEYS, limit_problem

_T = TypeVar("_T")

NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass
class Reader:
    """Everything needed to read one profile.

    Attributes:
        problems: collects what is wrong.
        table: fio's options.
        allow_exec: accept options that run programs or leave the Run's folder.
        places: job name and option to where it was written, for checks across options.
        jobs: job name to where it was written.
    """

    problems: Problems
    table: OptionTable
    allow_exec: bool = False
    places: dict[tuple[str, str], Node] = field(default_factory=dict)
    jobs: dict[str, Node] = field(default_factory=dict)

    def complain(self, node: Node | Entry, message: str, *, key: str = "", hint: str = "") -> None:
        """Note a problem at a node."""
        key = key or (node.key if isinstance(node, Node) else node.value.key)
        self.problems.add(message, line=node.line, column=node.column, key=key, hint=hint)

    def entries(self, node: Node, what: str) -> tuple[Entry, ...]:
        """Return the entries of a mapping, noting a problem for anything else."""
        if node.entries is None:
            self.complain(node, f"{what} must be a mapping, this is {node.kind}")
            return ()
        return node.entries

    def items(self, node: Node, what: str) -> tuple[Node, ...]:
        """Return the items of a list, noting a problem for anything else."""
        if node.items is None:
            self.complain(node, f"{what} must be a list, this is {node.kind}")
            return ()
        return node.items

    def text(self, node: Node, what: str) -> str:
        """Return a single value as text, noting a problem for anything else."""
        if not node.is_scalar or node.raw is None:
            self.complain(node, f"{what} must be a text, this is {node.kind}")
            return ""
        return str(node.raw).lower() if isinstance(node.raw, bool) else node.raw

    def given(self, node: Node, what: str) -> str:
        """Return a text that is not empty; an empty one is returned with a problem noted."""
        text = self.text(node, what)
        if not text and node.raw == "":
            self.complain(node, f"{what} is empty", hint="write a value, or leave it out")
        return text

    def value(self, node: Node, what: str, read: Callable[[str], _T], default: _T) -> _T:
        """Return a value read by `read`, or `default` with a problem noted."""
        text = self.given(node, what)
        if not text:
            return default
        try:
            return read(text)
        except InputError as error:
            self.complain(node, f"{what}: {error.message}", hint=error.hint)
        except ValueError:
            self.complain(node, f"{what}: {text!r} can't be read as a number")
        return default

    def unknown(self, entry: Entry, known: Iterable[str], what: str) -> None:
        """Note an unknown key, with the nearest known one."""
        names = list(known)
        near = nearest(entry.name, names)
        hint = f"did you mean `{near}`?" if near else f"known are {', '.join(names)}"
        self.complain(entry, f"{what} has no key {entry.name!r}", hint=hint)

    def name(self, node: Node | Entry, text: str, what: str) -> str:
        """Check a name of a profile, job or role."""
        untold = isinstance(node, Entry) or node.raw is not None
        if untold and (not NAME.fullmatch(text) or text.startswith("global")):
            self.complain(
                node,
                f"{text!r} can't be the name of {what}",
                hint="use letters, digits, - and _, not starting with global",
            )
        return text

    def job(self, name: str, node: Node) -> None:
        """Note where a job stands; two of one name could not be told apart in the results."""
        if name in self.jobs:
            line = self.jobs[name].line
            self.complain(
                node, f"a job called {name} stands in line {line} already", hint="rename one"
            )
        self.jobs.setdefault(name, node)

    def option(self, entry: Entry, *, dd: bool = False) -> tuple[str, str | None] | None:
        """Return canonical name and value of one option, or None with a problem noted."""
        node = entry.value
        if not node.is_scalar:
            self.complain(node, f"{entry.name} takes one value, this is {node.kind}")
            return None
        try:
            if dd:
                return check_dd_option(entry.name, node.raw)
            if node.raw is None:
                return self._taken_away(entry.name)
            return check_option(self.table, entry.name, node.raw, allow_exec=self.allow_exec)
        except InputError as error:
            self.complain(entry, error.message, hint=error.hint)
            return None

    def _taken_away(self, name: str) -> tuple[str, None]:
        option = self.table.find(name)
        if option is None:
            check_option(self.table, name, "1")
            raise InputError(f"no option {name!r}")
        return option.name, None

    def options(self, entries: Iterable[Entry], *, owner: str, dd: bool = False) -> Options:
        """Return canonical options of a mapping, noting a problem for what is given twice."""
        found: Options = {}
        for entry in entries:
            pair = self.option(entry, dd=dd)
            if pair is None:
                continue
            if pair[0] in found:
                self.complain(entry, f"{entry.name} is given twice, once under another name")
            found[pair[0]] = pair[1]
            self.place(owner, pair[0], entry)
        return found

    def place(self, owner: str, option: str, entry: Entry) -> None:
        """Note where an option of a job stands; owner is empty for the defaults."""
        self.places[owner, option] = Node(entry.line, entry.column, entry.value.key)

    def limits(self, node: Node) -> Limits:
        """Return declared limits."""
        values: dict[str, float] = {}
        for entry in self.entries(node, "limits"):
            if entry.name not in LIMIT_KEYS:
                self.unknown(entry, LIMIT_KEYS, "limits")
                continue
            key = LIMIT_KEYS[entry.name]
            number = self.value(entry.value, entry.name, key.read, 0.0)
            if number:
                values[key.attribute] = number
        limits = Limits(**values)
        if problem := limit_problem(limits):
            self.complain(node, problem[1], key=f"{node.key}.{problem[0]}")
        return limits

    def choice(self, node: Node, what: str, choices: Mapping[str, object]) -> str:
        """Return one of several words."""
        text = self.given(node, what)
        if text and text not in choices:
            near = nearest(text, list(choices))
            self.complain(
                node,
                f"{what} {text!r} is none of {', '.join(choices)}",
                hint=f"did you mean `{near}`?" if near else "",
            )
            return next(iter(choices))
        return text or next(iter(choices))
