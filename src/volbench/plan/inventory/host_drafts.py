"""Drafts of hosts and groups, with their places: what every kind of inventory is read into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from volbench.errors import InputError, Problems
from volbench.model.document.located_errors import suggestion
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.host_names import ALL, MOST_HOSTS, NAME, Expansion, expand


@dataclass(frozen=True)
class Draft:
    """A host as it was written.

    Attributes:
        name: without ranges.
        place: where its name stands.
        own: what was said of this host, by the names of our own inventories.
        inherited: what was said of many; its own goes before.
    """

    name: str
    place: Node
    own: Mapping[str, Node]
    inherited: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupDraft:
    """A group as it was written.

    Attributes:
        name: unique.
        place: where its name stands.
        hosts: names of hosts, with their places.
        children: names of groups, with their places.
    """

    name: str
    place: Node
    hosts: Mapping[str, Node] = field(default_factory=dict)
    children: Mapping[str, Node] = field(default_factory=dict)


@dataclass
class Sheet:
    """Everything that one inventory says.

    Attributes:
        drafts: name to host, in the order of the file.
        groups: name to group, in the order of the file.
    """

    drafts: dict[str, Draft] = field(default_factory=dict)
    groups: dict[str, GroupDraft] = field(default_factory=dict)

    def add(self, reader: HostReader, draft: Draft) -> None:
        """Take a host in, noting a problem for a name that is no name or was there before."""
        if not reader.is_name(draft.place, draft.name, "a host"):
            return
        if draft.name == ALL:
            reader.complain(
                draft.place, "all is the group of all hosts", hint="give this host another name"
            )
        elif draft.name in self.drafts:
            line = self.drafts[draft.name].place.line
            reader.complain(
                draft.place,
                f"a host called {draft.name} stands in line {line} already",
                hint="keep one of them, or rename one",
            )
        elif len(self.drafts) == MOST_HOSTS:
            reader.complain(draft.place, f"an inventory has at most {MOST_HOSTS} hosts")
        self.drafts.setdefault(draft.name, draft)


@dataclass
class HostReader:
    """Everything needed to read one inventory.

    Attributes:
        problems: collects what is wrong.
        notes: what was left aside, for the user to know.
        has_lost_names: whether a name could not be read, so that others may seem to be missing.
    """

    problems: Problems
    notes: list[str] = field(default_factory=list)
    has_lost_names: bool = False

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

    def unknown(self, entry: Entry, known: Iterable[str], what: str) -> None:
        """Note an unknown key, with the nearest known one."""
        hint = suggestion(entry.name, list(known))
        self.complain(entry, f"{what} has no key {entry.name!r}", hint=hint)

    def is_name(self, node: Node, name: str, what: str) -> bool:
        """Check the name of a host or a group."""
        if NAME.fullmatch(name):
            return True
        self.has_lost_names = True
        self.complain(
            node,
            f"{name!r} can't be the name of {what}",
            hint="use letters, digits, ., _ and -, beginning with a letter, a digit or _",
        )
        return False

    def expanded(self, node: Node, text: str) -> Expansion:
        """Return what a name with ranges stands for; nothing, with a problem noted."""
        try:
            return expand(text)
        except InputError as error:
            self.has_lost_names = True
            self.complain(node, error.message, hint=error.hint)
            return Expansion(())


def node_of(value: object, place: Node) -> Node:
    """Return plain data as a node, every value in it at one place; numbers become texts."""
    line, column, key = place.line, place.column, place.key
    if isinstance(value, dict):
        entries = tuple(
            Entry(str(name), line, column, node_of(below, _below(place, str(name))))
            for name, below in value.items()
        )
        return Node(line, column, key, entries=entries)
    if isinstance(value, list | tuple):
        items = tuple(node_of(item, _below(place, str(n))) for n, item in enumerate(value))
        return Node(line, column, key, items=items)
    raw = value if value is None or isinstance(value, bool) else str(value)
    return Node(line, column, key, raw=raw)


def _below(place: Node, name: str) -> Node:
    return Node(place.line, place.column, f"{place.key}.{name}" if place.key else name)


def at(entry: Entry) -> Node:
    """Return the place of a key, as a node."""
    return Node(entry.line, entry.column, entry.value.key)


def with_text(node: Node, text: str) -> Node:
    """Return a node that says something else at the same place."""
    return replace(node, raw=text)
