"""Ansible host variables that volbench supports.

These are Ansible's connection variables and those with the prefix ``volbench_``. Variables that
would change the connection and have no counterpart here are refused; the names of all others are
reported.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from volbench.errors import InputError, nearest
from volbench.model.campaign.host import LOCAL
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.host_drafts import HostReader, with_text
from volbench.plan.inventory.host_entries import HOST_KEYS, is_null
from volbench.plan.inventory.host_values import hop_text, port, user

PREFIX = "volbench_"

# Prefix of a variable with one entry of a mapping, such as ``volbench_volume_data``
_SINGLE = {"volume_": "volumes", "label_": "labels", "limit_": "limits"}

# Key of a host to Ansible's variables, the preferred one first
_SAME: Mapping[str, tuple[str, ...]] = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "key": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
    "sudo": ("ansible_become",),
}

_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args")

_ONE_VALUE: Mapping[str, tuple[tuple[str, ...], str]] = {
    "ansible_become_user": (("root",), "volbench becomes root or stays the user it logs in as"),
    "ansible_become_method": (("sudo", "ansible.builtin.sudo"), "volbench supports sudo only"),
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
_USED = {
    *(name for names in _SAME.values() for name in names),
    *_ARGUMENTS,
    *_ONE_VALUE,
    *_REFUSED,
    "ansible_connection",
    "ansible_group_priority",
}
_SSH = {"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"}
_LOCAL = {"local", "ansible.builtin.local"}

_WITHOUT_MEANING = {
    *("controlmaster", "controlpersist", "controlpath", "serveraliveinterval"),
    *("serveralivecountmax", "connecttimeout", "connectionattempts", "tcpkeepalive"),
    *("compression", "forwardagent", "loglevel", "batchmode", "forwardx11", "gssapiauthentication"),
    *("preferredauthentications", "identitiesonly", "addkeystoagent"),
}
_OF_HOST_KEYS = {"stricthostkeychecking", "userknownhostsfile", "globalknownhostsfile"}
_BARE = {"-q", "-C", "-A", "-a", "-x", "-T", "-4", "-6", "-n", "-v", "-vv", "-vvv"}


@dataclass(frozen=True)
class Fields:
    """Keys of a host from its variables."""

    own: dict[str, Node]  # keys of the host
    # jump hosts, since a listing does not distinguish those of the host from those of a group that
    # also contains the jump host
    inherited: dict[str, Node]
    unused: frozenset[str]  # variables that volbench does not use


def fields_of(reader: HostReader, variables: Node) -> Fields:
    """Return the keys from the variables of a host, and record problems."""
    entries = reader.entries(variables, "variables")
    known = {entry.name: entry.value for entry in entries if not is_null(entry.value)}
    usable = {name: node for name, node in known.items() if _is_usable(reader, name, node)}
    fields = _connection(reader, usable) | _volbench_keys(reader, usable)
    inherited = {name: fields.pop(name) for name in ("jump",) if name in fields}
    return Fields(fields, inherited, frozenset(name for name in known if not _is_used(name)))


def _is_used(name: str) -> bool:
    return name.startswith(PREFIX) or name in _USED


def _is_usable(reader: HostReader, name: str, node: Node) -> bool:
    """Record unsupported variables: secrets, other become methods, templates, vaults."""
    if name in _REFUSED:
        reader.complain(node, "volbench does not use this variable", hint=_REFUSED[name])
        return False
    if name in _ONE_VALUE and node.raw not in _ONE_VALUE[name][0]:
        reader.complain(node, f"{node.raw!r} is not supported", hint=_ONE_VALUE[name][1])
        return False
    return not _is_used(name) or _is_plain(reader, node)


def _is_plain(reader: HostReader, node: Node) -> bool:
    """Record a value that only Ansible can evaluate, at any depth."""
    text = node.raw if isinstance(node.raw, str) else ""
    vaulted = any(entry.name == "__ansible_vault" for entry in node.entries or ())
    reason = ""
    if "{{" in text or "{%" in text:
        reason = "a template, which volbench does not evaluate"
    elif text.startswith("$ANSIBLE_VAULT") or vaulted:
        reason = "an encrypted value, and volbench opens no vault"
    if reason:
        reader.complain(node, reason, hint="write the value")
        return False
    below = (*(entry.value for entry in node.entries or ()), *(node.items or ()))
    return not [child for child in below if not _is_plain(reader, child)]


def _connection(reader: HostReader, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return the keys from Ansible's own variables."""
    fields: dict[str, Node] = {}
    for key, names in _SAME.items():
        first = next((known[name] for name in names if name in known), None)
        if first is not None:
            fields[key] = first
    for name in _ARGUMENTS:
        if name in known:
            fields |= _jump_of(reader, name, known[name])
    kind = known.get("ansible_connection")
    if kind is not None and kind.raw in _LOCAL:
        place = with_text(kind, LOCAL)
        return {name: fields[name] for name in ("sudo",) if name in fields} | {"address": place}
    if kind is not None and kind.raw not in _SSH:
        reader.complain(
            kind, f"volbench connects by ssh, not by {kind.raw}", hint="leave such hosts out"
        )
    return fields


def _volbench_keys(reader: HostReader, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return the keys from the variables with volbench's prefix."""
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
            _note_unknown(reader, name, node)
    for key, entries in single.items():
        fields[key] = _with_entries(reader, key, fields.get(key), entries)
    return {key: node for key, node in fields.items() if _is_mapping(reader, key, node)}


def _with_entries(
    reader: HostReader, key: str, node: Node | None, entries: Sequence[Entry]
) -> Node:
    """Return a mapping with its entries overridden by single variables."""
    place = node or entries[0].value
    before = () if node is None else reader.entries(node, f"{PREFIX}{key}")
    merged = {entry.name: entry for entry in (*before, *entries)}
    return Node(place.line, place.column, place.key, entries=tuple(merged.values()))


def _is_mapping(reader: HostReader, key: str, node: Node) -> bool:
    single = next((start for start, name in _SINGLE.items() if name == key), "")
    if single and node.is_scalar:
        reader.complain(
            node,
            f"{key} must be a mapping, this is {node.kind}",
            hint=f"write {PREFIX}{single}NAME=VALUE, or a mapping between quotes",
        )
        return False
    return True


def _note_unknown(reader: HostReader, name: str, node: Node) -> None:
    near = nearest(name, [PREFIX + key for key in HOST_KEYS])
    hint = f"did you mean `{near}`?" if near else f"known are {', '.join(HOST_KEYS)}"
    reader.complain(node, f"unknown variable {name!r}", hint=hint)


def _jump_of(reader: HostReader, name: str, node: Node) -> dict[str, Node]:
    """Return the jump hosts in arguments for ssh(1).

    They are ``-J``, ``-o ProxyJump`` and a ``ProxyCommand`` that is only ``ssh -W %h:%p BASTION``.
    Options on host keys are reported; any other that would change the route is refused.
    """
    text = reader.text(node, name)
    found: dict[str, Node] = {}
    try:
        for option, value in _ssh_options(shlex.split(text)):
            if option == "proxyjump":
                found["jump"] = with_text(node, value)
            elif option == "proxycommand":
                found["jump"] = with_text(node, _hop_of_command(value))
            elif option in _OF_HOST_KEYS:
                reader.notes.append(
                    f"{name} sets {option} to {value!r}; volbench checks host keys in its own way"
                )
            elif option not in _WITHOUT_MEANING:
                reader.complain(
                    node,
                    f"the ssh option {option} is not supported",
                    hint="write a Host block in ~/.ssh/config, and its alias as ansible_host",
                )
                break
    except ValueError:
        reader.complain(node, "a quote is not closed")
    except InputError as error:
        reader.complain(node, error.message, hint=error.hint)
    return found


def _ssh_options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value of every option, in the form of ssh_config(5)."""
    rest = iter(words)
    for word in rest:
        if word in _BARE:
            continue
        if word[:2] not in {"-J", "-o"}:
            yield word, ""
            continue
        value = word[2:] or next(rest, "")
        if word.startswith("-J"):
            yield "proxyjump", value
            continue
        separator = "=" if "=" in value else " "
        keyword, _, setting = value.partition(separator)
        yield keyword.strip().lower(), setting.strip()


def _hop_of_command(text: str) -> str:
    """Return the hop of a ``ProxyCommand`` that only forwards to the host."""
    words = shlex.split(text)
    login: str | None = None
    port_number: int | None = None
    names: list[str] = []
    target = ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-W":
            target = next(rest, "")
        elif word == "-l":
            login = user(next(rest, ""))
        elif word == "-p":
            port_number = port(next(rest, ""))
        elif word.startswith("-"):
            names += [] if word in _BARE else ["", ""]
        else:
            names.append(word)
    if words[:1] != ["ssh"] or target.strip("[]") not in {"%h:%p", "%h]:%p"} or len(names) != 1:
        raise InputError(
            f"ProxyCommand {text!r} does more than forward to the host",
            hint="write -o ProxyJump=BASTION, and any other settings in ~/.ssh/config",
        )
    named, sign, host = names[0].rpartition("@")
    return hop_text(named if sign else login, host, port_number)
