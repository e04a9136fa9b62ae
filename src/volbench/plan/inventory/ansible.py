"""Ansible host variables that volbench supports.

These are Ansible's connection variables and those with the prefix ``volbench_``. Variables that
would change the connection and have no counterpart here are refused; the names of all others are
reported.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from volbench.errors import InputError, InventoryError, Problem, nearest
from volbench.model.campaign.host import LOCAL
from volbench.model.document.located_errors import Entry, Node
from volbench.plan.inventory.host_document import (
    HOST_KEYS,
    OWN_KEYS,
    check_port,
    check_user,
    hop_text,
)
from volbench.plan.inventory.host_drafts import (
    Draft,
    GroupDraft,
    HostReader,
    Sheet,
    at,
    node_of,
    with_text,
)
from volbench.plan.inventory.host_names import ALL
from volbench.slices import install_command

PREFIX = "volbench_"

# Prefix of a variable with one entry of a mapping, such as ``volbench_volume_data``
_SINGLE = {"volume_": "volumes", "label_": "labels", "limit_": "limits"}

_INTERPRETER = "ansible_python_interpreter"
# Key of a host to Ansible's variables, the preferred one first
_SAME: Mapping[str, tuple[str, ...]] = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "key": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
    "sudo": ("ansible_become",),
    "python": (_INTERPRETER,),
}
# Values with which Ansible looks for an interpreter itself, as volbench does without a path
_DISCOVERY = {"auto", "auto_silent", "auto_legacy", "auto_legacy_silent"}

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
    known = {entry.name: entry.value for entry in entries if not entry.value.is_null}
    connection = known.get("ansible_connection")
    if connection is not None and connection.raw in _LOCAL:
        known.pop(_INTERPRETER, None)  # often a template, and volbench's own Python is used
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
        if first is not None and not (key == "python" and first.raw in _DISCOVERY):
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
            login = check_user(next(rest, ""))
        elif word == "-p":
            port_number = check_port(next(rest, ""))
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


_META = "_meta"
_GROUP_KEYS = {"hosts", "vars", "children"}
_UNGROUPED = "ungrouped"


def is_ansible(top: Node | None) -> bool:
    """Whether a document consists of Ansible's groups, or is none: INI, or a folder."""
    if top is None:
        return True
    entries = {entry.name: entry.value for entry in top.entries or ()}
    if _META in entries or ALL in entries:
        return True
    if any(name in OWN_KEYS for name in entries):
        return False
    groups = [{entry.name for entry in node.entries or ()} for node in entries.values()]
    return any(keys & _GROUP_KEYS for keys in groups)


def read_ansible(reader: HostReader, path: Path, top: Node | None = None) -> Sheet:
    """Return the hosts and groups of an Ansible inventory."""
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
    """Return a listing as nodes; the key of a variable is HOST.VARIABLE."""
    hosts = node_of(listing.get(_META, {}).get("hostvars", {}), Node(0, 0, ""))
    meta = Node(0, 0, _META, entries=(Entry("hostvars", 0, 0, hosts),))
    groups = node_of({k: v for k, v in listing.items() if k != _META}, Node(0, 0, ""))
    return Node(0, 0, "", entries=(*(groups.entries or ()), Entry(_META, 0, 0, meta)))


def _is_listing(top: Node) -> bool:
    """Whether a document is a JSON listing, where hosts are lists, not Ansible's YAML."""
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
    """Return a listing in the structure of Ansible's YAML, for Ansible to merge its variables."""
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
    """Return the hosts of a listing in group order, with the variables that volbench uses."""
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
            if part.name == "hostvars":  # other keys include the profile of the encoder
                hosts = reader.entries(part.value, "hostvars")
                yield from ((host.name, host.value) for host in hosts)


def _part(reader: HostReader, entry: Entry, name: str) -> dict[str, Node]:
    """Return the names under ``hosts`` or ``children`` of a group, with their locations."""
    parts = {part.name: part.value for part in reader.entries(entry.value, "a group")}
    items = reader.items(parts[name], name) if name in parts else ()
    return {reader.given(item, f"an entry of {name}"): item for item in items}


def _group(reader: HostReader, entry: Entry, groups: Mapping[str, Entry]) -> GroupDraft:
    """Return a group; children without hosts are not listed, and omitted here."""
    children = _part(reader, entry, "children")
    known = {name: node for name, node in children.items() if name in groups}
    return GroupDraft(entry.name, at(entry), _part(reader, entry, "hosts"), known)


def _members(
    reader: HostReader, groups: Mapping[str, Entry], name: str, visited: set[str]
) -> Iterator[tuple[str, Node]]:
    """Yield the hosts of a group and its descendants, visiting each group once."""
    if name in visited or name not in groups:
        return
    visited.add(name)
    yield from _part(reader, groups[name], "hosts").items()
    for child in _part(reader, groups[name], "children"):
        yield from _members(reader, groups, child, visited)


INI = "ansible.builtin.ini"
YAML = "ansible.builtin.yaml"

_PROGRAM = "ansible-inventory"
_TIMEOUT_S = 120
_WARNING = re.compile(r"^\[(?:DEPRECATION )?WARNING\]:", re.MULTILINE)
# Locations in Ansible's messages: two forms since 2.19, two before, and one without a line
_PLACES = (
    re.compile(r"with source '(.+?)'>()()$", re.MULTILINE),
    re.compile(r"^Origin: (.+?)(?::(\d+)(?::(\d+))?)?$", re.MULTILINE),
    re.compile(r"appears to be in '(.+?)': line (\d+), column (\d+)"),
    re.compile(r"(/\S+?):(\d+)(): "),
    re.compile(r"failed to parse inventory source (.+)()()$", re.MULTILINE),
)
_CAUSE = "<<< caused by >>>"
# Ansible only warns when it ignores a misspelled ``children`` and its hosts
_DROPPED = "unexpected key"


def list_inventory(path: Path, *, parsers: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the output of ``ansible-inventory --list`` for a file or folder, and its warnings.

    Args:
        parsers: enabled parsers of Ansible: `INI`, `YAML` or both.
    """
    program = shutil.which(_PROGRAM, path=_search_path())
    if program is None:
        raise InventoryError(
            f"{path} is an Ansible inventory, and {_PROGRAM} is not installed",
            hint=f"install it ({install_command('ansible')}), write the inventory in volbench's "
            f"own YAML, or run `{_PROGRAM} -i {path} --list > hosts.json` elsewhere and use that "
            "file",
        )
    with tempfile.TemporaryDirectory(prefix="volbench-ansible-") as folder:
        done = _run(program, path, Path(folder), parsers)
    if done.returncode != 0:
        raise _unreadable(path, done.stderr)
    warnings = [" ".join(text.split()) for text in _WARNING.split(done.stderr)[1:]]
    dropped = [warning for warning in warnings if _DROPPED in warning]
    if dropped:
        raise _problem(path, f"Ansible ignores a part of it: {dropped[0]}")
    listing: dict[str, Any] = json.loads(done.stdout)
    return listing, warnings


def list_groups(groups: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return Ansible's listing of groups from a JSON listing without merged variables."""
    with tempfile.TemporaryDirectory(prefix="volbench-ansible-") as folder:
        copy = Path(folder) / f"{path.stem}.json"
        copy.write_text(json.dumps(groups), encoding="utf-8")
        return list_inventory(copy, parsers=(YAML,))


def _search_path() -> str:
    """Return PATH after the folder of this Python, for venvs that are not activated."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _run(
    program: str, path: Path, folder: Path, parsers: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    configuration = folder / "ansible.cfg"
    configuration.touch()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANSIBLE_")} | {
        "ANSIBLE_CONFIG": str(configuration),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_INVENTORY_ENABLED": ",".join(parsers),
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "COLUMNS": "1000",  # older versions wrap their warnings
        "LC_ALL": "C.UTF-8",
    }
    try:
        return subprocess.run(  # noqa: S603 - a program found on PATH, arguments as a list
            [program, "-i", str(path.absolute()), "--list"],
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InventoryError(
            f"{_PROGRAM} did not finish within {_TIMEOUT_S} s",
            hint=f"run it manually: {_PROGRAM} -i {path} --list",
        ) from error
    except OSError as error:
        raise InventoryError(
            f"{program} cannot be started: {error.strerror or error}", hint="reinstall ansible-core"
        ) from error


def _unreadable(path: Path, stderr: str) -> InventoryError:
    """Return the error with Ansible's reason and location."""
    cause = stderr.rpartition(_CAUSE)[2].partition("Origin: ")[0] if _CAUSE in stderr else stderr
    words = " ".join(cause.split())[:500] or "no reason given"
    named = next((found[-1] for place in _PLACES if (found := place.findall(stderr))), None)
    file, line, column = named or (str(path), "", "")
    message = f"Ansible cannot read it: {words}"
    if not Path(file).absolute().is_relative_to(path.absolute()):  # a copy for Ansible
        return _problem(path, message)
    inside = path / Path(file).absolute().relative_to(path.absolute())
    return _problem(inside, message, line=int(line or 0), column=int(column or 0))


def _problem(path: Path, message: str, *, line: int = 0, column: int = 0) -> InventoryError:
    problem = Problem(message, str(path), line, column)
    return InventoryError(str(problem), problems=[problem])
