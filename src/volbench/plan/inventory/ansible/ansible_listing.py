"""Reader of Ansible inventories: what ``ansible-inventory --list`` prints, as a Sheet.

Files in Ansible's INI or YAML go through ``ansible-inventory`` first. Its JSON is read as it is, so
that a machine without Ansible can use a listing that was written elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.ansible.ansible_run import INI, YAML, list_groups, list_inventory
from volbench.plan.inventory.ansible.ansible_variables import fields_of
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet, at, node_of
from volbench.plan.inventory.host_entries import OWN_KEYS
from volbench.plan.inventory.host_ranges import ALL

_META = "_meta"
_GROUP_KEYS = {"hosts", "vars", "children"}
_UNGROUPED = "ungrouped"


def is_ansible(top: Node) -> bool:
    """Whether a document is made of Ansible's groups."""
    entries = {entry.name: entry.value for entry in top.entries or ()}
    if _META in entries or ALL in entries:
        return True
    if any(name in OWN_KEYS for name in entries):
        return False
    groups = [{entry.name for entry in node.entries or ()} for node in entries.values()]
    return any(keys & _GROUP_KEYS for keys in groups)


def read_ansible(reader: HostReader, path: Path, top: Node | None = None) -> Sheet:
    """Return the hosts and groups of an Ansible inventory.

    Args:
        reader: collects problems and notes.
        path: the file or folder.
        top: its document where it is YAML or JSON.

    Raises:
        InventoryError: Ansible is missing, or it cannot read the inventory.
    """
    if top is None or not _is_listing(top):
        parsers = (INI, YAML) if path.is_dir() else (INI,) if top is None else (YAML,)
        listing, warnings = list_inventory(path, parsers=parsers)
    elif not _is_merged(top):
        listing, warnings = list_groups(_as_groups(_plain(top)), path)
    else:
        return _sheet(reader, top)
    reader.notes += [f"Ansible warns: {warning}" for warning in warnings]
    return _sheet(reader, _without_places(listing))


def _without_places(listing: Mapping[str, Any]) -> Node:
    """Return a printed listing as nodes; the key of a variable is HOST.VARIABLE."""
    hosts = node_of(listing.get(_META, {}).get("hostvars", {}), Node(0, 0, ""))
    meta = Node(0, 0, _META, entries=(Entry("hostvars", 0, 0, hosts),))
    groups = node_of({k: v for k, v in listing.items() if k != _META}, Node(0, 0, ""))
    return Node(0, 0, "", entries=(*(groups.entries or ()), Entry(_META, 0, 0, meta)))


def _is_listing(top: Node) -> bool:
    """Tell the JSON of a listing, in which hosts are lists, from Ansible's YAML."""
    entries = top.entries or ()
    return any(entry.name == _META or entry.value.items is not None for entry in entries) or any(
        part.name in {"hosts", "children"} and part.value.items is not None
        for entry in entries
        for part in entry.value.entries or ()
    )


def _is_merged(top: Node) -> bool:
    """Whether the variables of groups are merged into those of their hosts."""
    entries = {entry.name: entry.value for entry in top.entries or ()}
    return _META in entries and not any(
        part.name == "vars" for value in entries.values() for part in value.entries or ()
    )


def _plain(node: Node) -> Any:  # noqa: ANN401 - JSON
    if node.entries is not None:
        return {entry.name: _plain(entry.value) for entry in node.entries}
    return node.raw if node.items is None else [_plain(item) for item in node.items]


def _as_groups(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Return a listing in the form of Ansible's YAML, for Ansible to merge its variables."""
    groups: dict[str, Any] = {ALL: {"hosts": dict(listing.get(_META, {}).get("hostvars", {}))}}
    for name, group in listing.items():
        if name == _META:
            continue
        parts = {"hosts": group} if isinstance(group, list) else group
        made = groups.setdefault(name, {})
        for part in ("hosts", "children"):
            made[part] = dict.fromkeys(parts.get(part, ())) | made.get(part, {})
        made["vars"] = parts.get("vars", {})
    return groups


def _sheet(reader: HostReader, top: Node) -> Sheet:
    """Return the hosts of a listing in the order of its groups, with what volbench can use."""
    sheet = Sheet()
    groups = {entry.name: entry for entry in top.entries or () if entry.name != _META}
    variables = dict(_host_variables(reader, top))
    unused: set[str] = set()
    for name, place in (dict(_members(reader, groups, ALL, set())) | variables).items():
        found = fields_of(reader, variables[name]) if name in variables else None
        unused |= found.unused if found else set()
        own, inherited = (found.own, found.inherited) if found else ({}, {})
        sheet.add(reader, Draft(name, place, own, inherited))
    if not sheet.drafts and not reader.problems.found:
        reader.problems.add("an inventory needs hosts", line=1, column=1)
    for name, entry in groups.items():
        group = _group(reader, entry, groups)
        if name not in {ALL, _UNGROUPED} or group.hosts:
            reader.is_name(at(entry), name, "a group")
            sheet.groups[name] = group
    if unused:
        reader.notes.append(f"not used by volbench: {', '.join(sorted(unused))}")
    return sheet


def _host_variables(reader: HostReader, top: Node) -> Iterator[tuple[str, Node]]:
    for entry in top.entries or ():
        for part in reader.entries(entry.value, _META) if entry.name == _META else ():
            if part.name == "hostvars":  # beside it stands, for one, the profile of the encoder
                hosts = reader.entries(part.value, "hostvars")
                yield from ((host.name, host.value) for host in hosts)


def _part(reader: HostReader, entry: Entry, name: str) -> dict[str, Node]:
    """Return the names under ``hosts`` or ``children`` of a group, with their places."""
    parts = {part.name: part.value for part in reader.entries(entry.value, "a group")}
    items = reader.items(parts[name], name) if name in parts else ()
    return {reader.given(item, f"an entry of {name}"): item for item in items}


def _group(reader: HostReader, entry: Entry, groups: Mapping[str, Entry]) -> GroupDraft:
    """Return a group; children without any host are not listed, and left out here too."""
    children = _part(reader, entry, "children")
    known = {name: node for name, node in children.items() if name in groups}
    return GroupDraft(entry.name, at(entry), _part(reader, entry, "hosts"), known)


def _members(
    reader: HostReader, groups: Mapping[str, Entry], name: str, visited: set[str]
) -> Iterator[tuple[str, Node]]:
    """Yield the hosts of a group and of those below it, each group once."""
    if name in visited or name not in groups:
        return
    visited.add(name)
    yield from _part(reader, groups[name], "hosts").items()
    for child in _part(reader, groups[name], "children"):
        yield from _members(reader, groups, child, visited)
