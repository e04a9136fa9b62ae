"""Reader of what ``ansible-inventory --list`` prints: hosts with their variables, and groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from volbench.model.campaign.host import LOCAL
from volbench.model.document.located_errors import Entry, Node
from volbench.plan.inventory.host_document import OWN_KEYS
from volbench.plan.inventory.host_drafts import GroupDraft, HostDraft, InventoryDraft, location
from volbench.plan.inventory.host_names import ALL

META = "_meta"
_GROUPS_OF_ANSIBLE = {ALL, "ungrouped"}
# The later of two variables for one key applies.
_KEYS: Mapping[str, str] = {
    "ansible_host": "address",
    "ansible_port": "port",
    "ansible_user": "user",
    "ansible_private_key_file": "key",
    "ansible_ssh_private_key_file": "key",
    "ansible_become": "sudo",
}
_CONNECTION, _ARGUMENTS = "ansible_connection", "ansible_ssh_common_args"
_LOCAL = {"local", "ansible.builtin.local"}
_SSH = {"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"}
_JUMP = re.compile(r"\s*(?:-J\s*|-o\s*ProxyJump=)([^\s'\"]+)\s*")


def is_of_ansible(top: Node) -> bool:
    """Return whether a document has groups of Ansible, and nothing of volbench's own format."""
    groups = {entry.name: entry.value for entry in top.entries or ()}
    keys = {key.name for group in groups.values() for key in group.entries or ()}
    is_of_groups = ALL in groups or not keys.isdisjoint({"hosts", "vars", "children"})
    return is_of_groups and groups.keys().isdisjoint((*OWN_KEYS, META))


def read_listing(draft: InventoryDraft, top: Node) -> None:
    """Read the hosts and groups of a listing, and note the variables without a meaning."""
    nodes = {entry.name: entry for entry in top.entries or ()}
    meta = {entry.name: entry.value for entry in draft.entries(nodes.pop(META).value, META)}
    variables = draft.entries(meta["hostvars"], "hostvars") if "hostvars" in meta else ()
    hosts = {entry.name: entry for entry in variables}
    groups = {name: _group(draft, entry, nodes) for name, entry in nodes.items()}
    listed = {name: node for group in groups.values() for name, node in group.hosts.items()}
    passed_over: set[str] = set()
    for name in dict.fromkeys((*listed, *hosts)):
        at = location(hosts[name]) if name in hosts else listed[name]
        fields = _fields(draft, hosts[name].value, passed_over) if name in hosts else {}
        # The jump host of a group may be a member of the group, which has no way through itself.
        inherited = {key: fields.pop(key) for key in ("jump",) if key in fields}
        draft.add(HostDraft(name, at, fields, inherited))
    if not draft.hosts and not draft.problems.found:
        draft.complain(top, "an inventory needs hosts")
    for name, group in groups.items():
        if name not in _GROUPS_OF_ANSIBLE and draft.is_name(group.at, name, "a group"):
            draft.groups[name] = group
    if passed_over:
        draft.notes.append(f"volbench does not use {', '.join(sorted(passed_over))}")


def _group(draft: InventoryDraft, entry: Entry, groups: Mapping[str, Entry]) -> GroupDraft:
    """Return a group; groups without hosts are among its children, and nowhere else."""
    nodes = {key.name: key.value for key in draft.entries(entry.value, "a group")}
    if "vars" in nodes:
        hint = "run ansible-inventory --list without --export"
        draft.complain(nodes["vars"], "variables of a group are not those of its hosts", hint=hint)
    hosts, children = (
        {draft.given(item, f"one of {key}"): item for item in draft.items(nodes[key], key)}
        if key in nodes
        else {}
        for key in ("hosts", "children")
    )
    known = {name: node for name, node in children.items() if name in groups}
    return GroupDraft(location(entry), hosts, known)


def _fields(draft: InventoryDraft, variables: Node, passed_over: set[str]) -> dict[str, Node]:
    """Return the keys of a host from its variables; add the names of variables without a key."""
    entries = draft.entries(variables, "variables")
    known = {entry.name: entry.value for entry in entries if entry.name.startswith("ansible_")}
    fields = {key: known[name] for name, key in _KEYS.items() if name in known}
    for node in (node for node in fields.values() if "{{" in str(node.raw)):
        draft.complain(node, "ansible-inventory leaves this template", hint="write the value")
    arguments = known.get(_ARGUMENTS)
    jump = _JUMP.fullmatch(str(arguments.raw)) if arguments else None
    if arguments and jump:
        fields["jump"] = replace(arguments, raw=jump[1])
    passed_over |= known.keys() - {*_KEYS, _CONNECTION, *([_ARGUMENTS] if jump else [])}
    connection = known.get(_CONNECTION)
    if connection and connection.raw in _LOCAL:
        sudo = {name: node for name, node in fields.items() if name == "sudo"}
        return {**sudo, "address": replace(connection, raw=LOCAL)}
    if connection and connection.raw not in _SSH:
        hint = "leave the host out"
        draft.complain(connection, f"volbench connects by ssh, not by {connection.raw}", hint=hint)
    return fields
