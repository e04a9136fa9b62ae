"""Ansible's YAML, or the JSON of ``ansible-inventory --list``, in; groups, hosts, variables out."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.ansible_hosts import host_names
from volbench.plan.inventory.ansible_tree import UNGROUPED, AnsibleTree
from volbench.plan.inventory.draft import ALL, HostReader, at
from volbench.plan.inventory.host_entries import is_null
from volbench.plan.inventory.own import OWN_KEYS

_META = "_meta"
_GROUP_KEYS = ("hosts", "vars", "children")


def is_ansible(top: Node) -> bool:
    """Tell whether a document is made of Ansible's groups."""
    entries = {entry.name: entry.value for entry in top.entries or ()}
    if _META in entries or ALL in entries:
        return True
    if any(name in OWN_KEYS for name in entries):
        return False
    groups = [{one.name for one in node.entries or ()} for node in entries.values()]
    return any(keys & set(_GROUP_KEYS) for keys in groups)


def read_groups(reader: HostReader, top: Node) -> AnsibleTree:
    """Return what an inventory in Ansible's YAML or JSON says."""
    tree = AnsibleTree()
    for entry in reader.entries(top, "an inventory"):
        if entry.name != _META:
            _read_group(reader, tree, entry)
    for entry in top.entries or ():
        if entry.name == _META:
            tree.is_whole = True
            _read_meta(reader, tree, entry.value)
    return tree


def _read_group(reader: HostReader, tree: AnsibleTree, entry: Entry) -> None:
    group = tree.group(entry.name, at(entry))
    if is_null(entry.value):
        return
    if entry.value.items is not None:  # a script may give nothing but names
        _read_hosts(reader, tree, entry.name, entry.value)
        return
    for part in reader.entries(entry.value, "a group"):
        if part.name not in _GROUP_KEYS:
            reader.unknown(part, _GROUP_KEYS, "a group")
        elif is_null(part.value):
            continue
        elif part.name == "hosts":
            _read_hosts(reader, tree, entry.name, part.value)
        elif part.name == "vars":
            group.variables |= _variables(reader, part.value)
        else:
            for child in _named(reader, part.value, "children"):
                group.children.setdefault(child.name, at(child))
                _read_group(reader, tree, child)


def _read_hosts(reader: HostReader, tree: AnsibleTree, group: str, node: Node) -> None:
    for entry in _named(reader, node, "hosts"):
        variables = {} if is_null(entry.value) else _variables(reader, entry.value)
        for name, port in host_names(reader, at(entry), entry.name):
            tree.groups[group].hosts.setdefault(name, at(entry))
            with_port = {"ansible_port": port} if port and "ansible_port" not in variables else {}
            tree.add_host(reader, name, at(entry), variables | with_port)


def _variables(reader: HostReader, node: Node) -> dict[str, Node]:
    return {entry.name: entry.value for entry in reader.entries(node, "variables")}


def _named(reader: HostReader, node: Node, what: str) -> Iterator[Entry]:
    """Yield the entries of a mapping, or the names of a list as entries without a value."""
    if node.items is None:
        yield from reader.entries(node, what)
        return
    for item in node.items:
        name = reader.given(item, f"one of {what}")
        if name:
            yield Entry(name, item.line, item.column, Node(item.line, item.column, item.key))


def _read_meta(reader: HostReader, tree: AnsibleTree, node: Node) -> None:
    """Read the variables of all hosts; those of their groups are in them already."""
    for part in reader.entries(node, _META):
        if part.name != "hostvars":
            continue  # such as profile, which tells how the values were written
        for entry in reader.entries(part.value, "hostvars"):
            if entry.name not in tree.hosts:
                tree.group(UNGROUPED, at(entry)).hosts[entry.name] = at(entry)
            tree.add_host(reader, entry.name, at(entry), _variables(reader, entry.value))
