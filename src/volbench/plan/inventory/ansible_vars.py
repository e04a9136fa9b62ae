"""Variables of one Ansible host in, what they mean in our own words out.

Only Ansible's connection variables and those that begin with ``volbench_`` are used. Variables that
would change how a host is reached and have no counterpart here are refused; all others are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from volbench.model.campaign.host import LOCAL
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.fio_option import nearest
from volbench.plan.inventory.ansible_args import read_arguments
from volbench.plan.inventory.draft import HostReader, with_text
from volbench.plan.inventory.host_entries import HOST_KEYS, is_null

Variables = dict[str, Node]

PREFIX = "volbench_"

_SINGLE = {"volume_": "volumes", "label_": "labels", "limit_": "limits"}
"""Beginning of a variable that holds one entry of a mapping, such as ``volbench_volume_data``."""

_SAME: Mapping[str, tuple[str, ...]] = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "key": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
    "sudo": ("ansible_become",),
}
"""Our word to Ansible's, the one that goes before the other first."""

_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")

_ONE_VALUE: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ansible_become_user": (("root",), "volbench becomes root or nobody else"),
    "ansible_become_method": (("sudo", "ansible.builtin.sudo"), "volbench knows sudo only"),
    "ansible_become_flags": (("", "-n", "-H -S -n"), "volbench calls sudo -n"),
}

_NO_SECRETS = "use a key, the agent, and sudo without a password for fio"
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"), _NO_SECRETS),
    **dict.fromkeys(
        ("ansible_become_pass", "ansible_become_password", "ansible_sudo_pass"), _NO_SECRETS
    ),
    **dict.fromkeys(
        ("ansible_ssh_private_key", "ansible_private_key", "ansible_private_key_passphrase"),
        "keep keys in files or in the agent",
    ),
    "ansible_ssh_private_key_passphrase": "add the key to the agent",
    "ansible_paramiko_proxy_command": "write ansible_ssh_common_args='-J BASTION'",
}
_PRIORITY = "ansible_group_priority"
_SSH = {"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"}
_LOCAL = {"local", "ansible.builtin.local"}


@dataclass(frozen=True)
class Fields:
    """What the variables of a host mean.

    Attributes:
        own: what was said of it.
        inherited: what was said of its groups, where that makes a difference.
        unused: variables that mean nothing to volbench.
    """

    own: dict[str, Node]
    inherited: dict[str, Node]
    unused: frozenset[str]


def fields_of(reader: HostReader, own: Variables, inherited: Variables) -> Fields:
    """Return what the variables of a host mean."""
    known = {name: node for name, node in {**inherited, **own}.items() if not is_null(node)}
    good = {name: node for name, node in known.items() if _is_good(reader, name, node)}
    fields = _connection(reader, good) | _ours(reader, good)
    unused = frozenset(name for name in known if not _is_used(name))
    ways = [name for name in (*_ARGUMENTS, f"{PREFIX}jump") if name in known]
    if "jump" in fields and not any(name in own for name in ways):
        return Fields(fields, {"jump": fields.pop("jump")}, unused)
    return Fields(fields, {}, unused)


def _is_used(name: str) -> bool:
    same = {one for names in _SAME.values() for one in names}
    return (
        name.startswith(PREFIX)
        or name in {*same, *_ARGUMENTS, *_ONE_VALUE, "ansible_connection", _PRIORITY}
        or name in _REFUSED
    )


def _is_good(reader: HostReader, name: str, node: Node) -> bool:
    """Note what can't be used: secrets, other ways to become root, templates, vaults."""
    if name in _REFUSED:
        reader.complain(node, "volbench uses no such variable", hint=_REFUSED[name])
        return False
    if name in _ONE_VALUE and node.raw not in _ONE_VALUE[name][0]:
        reader.complain(node, "this can't be had", hint=_ONE_VALUE[name][1])
        return False
    return not _is_used(name) or _is_plain(reader, node)


def _is_plain(reader: HostReader, node: Node) -> bool:
    """Note a value that only Ansible could work out, however deep it is hidden."""
    text = node.raw if isinstance(node.raw, str) else ""
    vaulted = any(entry.name == "__ansible_vault" for entry in node.entries or ())
    words = ""
    if "{{" in text or "{%" in text:
        words = "a template, and volbench fills in none"
    elif text.startswith("$ANSIBLE_VAULT") or vaulted:
        words = "it is encrypted, and volbench opens no vault"
    if words:
        reader.complain(node, words, hint="write the value")
        return False
    below = (*(entry.value for entry in node.entries or ()), *(node.items or ()))
    return not [one for one in below if not _is_plain(reader, one)]


def _connection(reader: HostReader, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return what Ansible's own variables say."""
    fields: dict[str, Node] = {}
    for ours, names in _SAME.items():
        first = next((known[name] for name in names if name in known), None)
        if first is not None:
            fields[ours] = first
    for name in _ARGUMENTS:
        if name in known:
            fields |= read_arguments(reader, name, known[name])
    kind = known.get("ansible_connection")
    if kind is not None and kind.raw in _LOCAL:
        place = with_text(kind, LOCAL)
        return {name: fields[name] for name in ("sudo",) if name in fields} | {"address": place}
    if kind is not None and kind.raw not in _SSH:
        reader.complain(
            kind, f"volbench connects by ssh, not by {kind.raw}", hint="leave such hosts out"
        )
    return fields


def _ours(reader: HostReader, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return what the variables say that are named after our own keys."""
    fields: dict[str, Node] = {}
    single: dict[str, list[Entry]] = {}
    for name, node in known.items():
        word = name.removeprefix(PREFIX)
        kind = next((start for start in _SINGLE if word.startswith(start)), "")
        if word == name:
            continue
        if word in HOST_KEYS:
            fields[word] = node
        elif kind and word != kind:
            entry = Entry(word.removeprefix(kind), node.line, node.column, node)
            single.setdefault(_SINGLE[kind], []).append(entry)
        else:
            _unknown(reader, name, node)
    for key, entries in single.items():
        fields[key] = _with_entries(reader, key, fields.get(key), entries)
    return {key: node for key, node in fields.items() if _is_mapping(reader, key, node)}


def _with_entries(
    reader: HostReader, key: str, node: Node | None, entries: Sequence[Entry]
) -> Node:
    """Return a mapping with the entries of single variables over its own."""
    place = node or entries[0].value
    before = () if node is None else reader.entries(node, f"{PREFIX}{key}")
    merged = {entry.name: entry for entry in (*before, *entries)}
    return Node(place.line, place.column, f"{PREFIX}{key}", entries=tuple(merged.values()))


def _is_mapping(reader: HostReader, key: str, node: Node) -> bool:
    """Check what must be one, with the way to write it in a line of INI."""
    one = next((start for start, name in _SINGLE.items() if name == key), "")
    if one and node.is_scalar:
        reader.complain(
            node,
            f"{key} must be a mapping, this is {node.kind}",
            hint=f"write {PREFIX}{one}NAME=VALUE, or a mapping between quotes",
        )
        return False
    return True


def _unknown(reader: HostReader, name: str, node: Node) -> None:
    near = nearest(name, [PREFIX + key for key in HOST_KEYS])
    hint = f"did you mean `{near}`?" if near else f"known are {', '.join(HOST_KEYS)}"
    reader.complain(node, f"volbench knows no variable {name!r}", hint=hint)
