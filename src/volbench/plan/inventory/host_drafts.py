"""Draft of an inventory in any format: hosts and groups as written, with their locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from volbench.errors import InputError, Problems
from volbench.model.campaign.host import LOCAL, Host
from volbench.model.document.located_errors import Entry, Node, suggestion, validate
from volbench.plan.inventory.host_document import HostDefaults, HostEntry
from volbench.plan.inventory.host_names import ALL, MAX_HOSTS, NAME, Expansion, expand

# Keys whose entries are merged with the inherited ones; all other keys replace them
_MERGED = ("volumes", "labels")
_OF_CONNECTIONS = ("port", "user", "key", "jump")
# Keys that people write for others
_OTHER_WORDS = dict.fromkeys(("ansible_host", "host", "hostname", "ip", "local"), "address")
_OTHER_WORDS |= dict.fromkeys(("device", "devices", "disk", "disks", "on", "path"), "volumes")


@dataclass(frozen=True)
class HostDraft:
    """A host as written."""

    name: str  # name, with ranges expanded
    at: Node  # location of the name
    own: Mapping[str, Node]  # values of this host, by the keys of volbench's own format
    # values shared with other hosts; `own` takes precedence
    inherited: Mapping[str, Node] = field(default_factory=dict)

    def effective(self, draft: InventoryDraft) -> dict[str, Node]:
        """Return the values of the host; null removes an inherited one."""
        fields = dict(self.inherited)
        for name, node in self.own.items():
            before = fields.get(name)
            if node.is_null:
                if fields.pop(name, None) is None:
                    draft.complain(node, "has no value", hint="write one, or remove the key")
            elif name in _MERGED and before and before.entries and node.entries is not None:
                merged = {entry.name: entry for entry in (*before.entries, *node.entries)}
                inherited = {entry.name for entry in before.entries}
                removed = {e.name for e in node.entries if e.value.is_null} & inherited
                kept = tuple(entry for name, entry in merged.items() if name not in removed)
                fields[name] = Node(node.line, node.column, node.key, entries=kept)
            else:
                fields[name] = node
        return fields


@dataclass(frozen=True)
class GroupDraft:
    """A group as written: names of hosts and of groups, with their locations."""

    at: Node  # location of its name
    hosts: Mapping[str, Node] = field(default_factory=dict)
    children: Mapping[str, Node] = field(default_factory=dict)


@dataclass
class InventoryDraft:
    """Content of an inventory while it is read: typed access to nodes, and all its problems."""

    problems: Problems
    hosts: dict[str, HostDraft] = field(default_factory=dict)  # by name, in the order of the file
    groups: dict[str, GroupDraft] = field(default_factory=dict)  # likewise
    notes: list[str] = field(default_factory=list)  # on what has no meaning
    has_lost_names: bool = False  # whether a name is unreadable, so that references to it may fail

    def add(self, host: HostDraft) -> None:
        """Add a host; record a problem for an invalid or duplicate name."""
        if not self.is_name(host.at, host.name, "a host"):
            return
        if host.name == ALL:
            hint = "give this host another name"
            self.complain(host.at, "all is the group of all hosts", hint=hint)
        elif host.name in self.hosts:
            line = self.hosts[host.name].at.line
            message = f"a host {host.name} is already defined in line {line}"
            self.complain(host.at, message, hint="keep one of them, or rename one")
        elif len(self.hosts) == MAX_HOSTS:
            self.complain(host.at, f"an inventory has at most {MAX_HOSTS} hosts")
        self.hosts.setdefault(host.name, host)

    def complain(self, node: Node | Entry, message: str, *, key: str = "", hint: str = "") -> None:
        """Record a problem at a node."""
        key = key or (node.key if isinstance(node, Node) else node.value.key)
        self.problems.add(message, line=node.line, column=node.column, key=key, hint=hint)

    def entries(self, node: Node, what: str, known: Sequence[str] = ()) -> Iterator[Entry]:
        """Yield the entries of a mapping; record anything else, and keys that are not known."""
        if node.entries is None:
            self.complain(node, f"{what} must be a mapping, this is {node.kind}")
        for entry in node.entries or ():
            if not known or entry.name in known:
                yield entry
            else:
                hint = suggestion(_OTHER_WORDS.get(entry.name, entry.name), known)
                self.complain(entry, f"{what} has no key {entry.name!r}", hint=hint)

    def items(self, node: Node, what: str) -> tuple[Node, ...]:
        """Return the items of a list; record a problem for anything else."""
        if node.items is None:
            self.complain(node, f"{what} must be a list, this is {node.kind}")
        return node.items or ()

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

    def is_name(self, node: Node, name: str, what: str) -> bool:
        """Check the name of a host or a group."""
        if NAME.fullmatch(name):
            return True
        self.has_lost_names = True
        hint = "use letters, digits, ., _ and -, beginning with a letter, a digit or _"
        self.complain(node, f"{name!r} is not a valid name of {what}", hint=hint)
        return False

    def expanded(self, node: Node, text: str) -> Expansion:
        """Return the names in a name with ranges; record a problem if it is invalid."""
        try:
            return expand(text)
        except InputError as error:
            self.has_lost_names = True
            self.complain(node, error.message, hint=error.hint)
            return Expansion(())

    def defaults(self, node: Node | None) -> dict[str, Node]:
        """Return the default values of all hosts, from a mapping that may be missing or null."""
        values = {}
        keys = tuple(HostDefaults.model_fields)
        for entry in self.entries(node, "defaults", keys) if node and not node.is_null else ():
            if entry.value.is_null:
                message, hint = f"{entry.name} has no value", "write one, or leave it out"
                self.complain(entry, message, hint=hint)
            else:
                values[entry.name] = entry.value
        return values

    def host(self, draft: HostDraft) -> Host:
        """Return a host, and record its problems."""
        fields, at = draft.effective(self), draft.at
        entries = tuple(Entry(name, node.line, node.column, node) for name, node in fields.items())
        node = Node(at.line, at.column, at.key, entries=entries)
        document = validate(HostEntry, node, self.problems)
        if document is None:  # its problems are recorded, and the inventory is invalid
            return Host(name=draft.name, address=draft.name)
        written = document.address if "address" in fields else draft.name
        address = "" if written == LOCAL else written
        if draft.name == LOCAL and address:
            hint = "give a machine with an address another name"
            self.complain(fields["address"], "local is the controller's own machine", hint=hint)
        values = {name: getattr(document, name) for name in document.model_fields_set}
        values["limits"] = {role: limits.limits() for role, limits in document.limits.items()}
        for name in _OF_CONNECTIONS if not address else ():
            values.pop(name, None)
            if name in draft.own and not draft.own[name].is_null:
                message = (
                    "has no effect for the controller's own machine, which needs no connection"
                )
                self.complain(draft.own[name], message, hint="leave it out")
        return Host.model_validate(values | {"name": draft.name, "address": address})


def location(entry: Entry) -> Node:
    """Return the location of a key, as a node."""
    return Node(entry.line, entry.column, entry.value.key)
