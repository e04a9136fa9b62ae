"""Drafts of hosts and groups with their locations, common to all inventory formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from volbench.errors import InputError, Problems
from volbench.model.document.located_errors import Entry, Node, suggestion
from volbench.plan.inventory.host_names import ALL, MAX_HOSTS, NAME, Expansion, expand


@dataclass(frozen=True)
class Draft:
    """A host as written."""

    name: str  # name, with ranges expanded
    place: Node  # location of the name
    own: Mapping[str, Node]  # values of this host, by the keys of volbench's own format
    # values shared with other hosts; `own` takes precedence
    inherited: Mapping[str, Node] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupDraft:
    """A group as written."""

    name: str  # unique
    place: Node  # location of the name
    hosts: Mapping[str, Node] = field(default_factory=dict)  # names of hosts, with their locations
    # names of groups, with their locations
    children: Mapping[str, Node] = field(default_factory=dict)


@dataclass
class Sheet:
    """Content of an inventory."""

    drafts: dict[str, Draft] = field(default_factory=dict)  # name to host, in the order of the file
    # name to group, in the order of the file
    groups: dict[str, GroupDraft] = field(default_factory=dict)

    def add(self, reader: HostReader, draft: Draft) -> None:
        """Add a host; record a problem for an invalid or duplicate name."""
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
                f"a host {draft.name} is already defined in line {line}",
                hint="keep one of them, or rename one",
            )
        elif len(self.drafts) == MAX_HOSTS:
            reader.complain(draft.place, f"an inventory has at most {MAX_HOSTS} hosts")
        self.drafts.setdefault(draft.name, draft)


@dataclass
class HostReader:
    """Reader of an inventory: typed access to nodes, and collection of problems."""

    problems: Problems  # collects all problems
    notes: list[str] = field(default_factory=list)  # ignored content, reported to the user
    has_lost_names: bool = False  # whether a name is unreadable, so that references to it may fail

    def complain(self, node: Node | Entry, message: str, *, key: str = "", hint: str = "") -> None:
        """Record a problem at a node."""
        key = key or (node.key if isinstance(node, Node) else node.value.key)
        self.problems.add(message, line=node.line, column=node.column, key=key, hint=hint)

    def entries(self, node: Node, what: str) -> tuple[Entry, ...]:
        """Return the entries of a mapping; record a problem for anything else."""
        if node.entries is None:
            self.complain(node, f"{what} must be a mapping, this is {node.kind}")
            return ()
        return node.entries

    def items(self, node: Node, what: str) -> tuple[Node, ...]:
        """Return the items of a list; record a problem for anything else."""
        if node.items is None:
            self.complain(node, f"{what} must be a list, this is {node.kind}")
            return ()
        return node.items

    def text(self, node: Node, what: str) -> str:
        """Return a single value as text; record a problem for anything else."""
        if not node.is_scalar or node.raw is None:
            self.complain(node, f"{what} must be a text, this is {node.kind}")
            return ""
        return str(node.raw).lower() if isinstance(node.raw, bool) else node.raw

    def given(self, node: Node, what: str) -> str:
        """Return a text; record a problem if it is empty."""
        text = self.text(node, what)
        if not text and node.raw == "":
            self.complain(node, f"{what} is empty", hint="write a value, or leave it out")
        return text

    def unknown(self, entry: Entry, known: Iterable[str], what: str) -> None:
        """Record an unknown key, with the nearest known one."""
        hint = suggestion(entry.name, list(known))
        self.complain(entry, f"{what} has no key {entry.name!r}", hint=hint)

    def known(self, node: Node, known: Iterable[str], what: str) -> Iterator[Entry]:
        """Yield the entries of a mapping, which may be null; record those with unknown keys."""
        for entry in () if node.is_null else self.entries(node, what):
            if entry.name in known:
                yield entry
            else:
                self.unknown(entry, known, what)

    def is_name(self, node: Node, name: str, what: str) -> bool:
        """Check the name of a host or a group."""
        if NAME.fullmatch(name):
            return True
        self.has_lost_names = True
        self.complain(
            node,
            f"{name!r} is not a valid name of {what}",
            hint="use letters, digits, ., _ and -, beginning with a letter, a digit or _",
        )
        return False

    def expanded(self, node: Node, text: str) -> Expansion:
        """Return the names in a name with ranges; record a problem if it is invalid."""
        try:
            return expand(text)
        except InputError as error:
            self.has_lost_names = True
            self.complain(node, error.message, hint=error.hint)
            return Expansion(())


def node_of(value: object, place: Node) -> Node:
    """Return plain data as a node, with all values at one location; numbers become texts."""
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
    """Return the location of a key, as a node."""
    return Node(entry.line, entry.column, entry.value.key)


def with_text(node: Node, text: str) -> Node:
    """Return a node with another text at the same location."""
    return replace(node, raw=text)
