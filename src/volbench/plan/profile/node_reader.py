"""Typed access to a profile's values; whatever does not fit becomes a problem with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from volbench.errors import InputError
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.canonical import check_option
from volbench.model.profile.dd_option import check_dd_option
from volbench.model.profile.fio_option import OptionTable
from volbench.model.profile.profile_model import Options
from volbench.plan.profile.document_fields import FieldReader

NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass
class Reader(FieldReader):
    """Everything needed to read one profile.

    Attributes:
        table: fio's options.
        allow_exec: accept options that run programs or leave the Run's folder.
        places: job name and option to where it was written, for checks across options.
        jobs: job name to where it was written.
    """

    table: OptionTable
    allow_exec: bool = False
    places: dict[tuple[str, str], Node] = field(default_factory=dict)
    jobs: dict[str, Node] = field(default_factory=dict)

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
