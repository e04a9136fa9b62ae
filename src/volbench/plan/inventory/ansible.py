"""Reader of Ansible inventories through ``ansible-inventory --list``, or of its saved output.

Ansible's connection variables and variables with the prefix ``volbench_`` become the keys of a
host. Variables that would change the connection and have no counterpart are refused; the names of
all other variables are reported.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from volbench.errors import InputError, InventoryError, Problem, nearest
from volbench.extras import install_command
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
    GroupDraft,
    HostDraft,
    InventoryDraft,
    location,
    node_of,
)
from volbench.plan.inventory.host_names import ALL

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

_META = "_meta"
_GROUP_KEYS = {"hosts", "vars", "children"}
_UNGROUPED = "ungrouped"
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


def _fields(draft: InventoryDraft, variables: Node, unused: set[str]) -> dict[str, Node]:
    """Return the keys of a host from its variables; add the names of unused variables."""
    entries = draft.entries(variables, "variables")
    known = {entry.name: entry.value for entry in entries if not entry.value.is_null}
    connection = known.get("ansible_connection")
    if connection is not None and connection.raw in _LOCAL:
        known.pop(_INTERPRETER, None)  # often a template, and volbench's own Python is used
    unused |= {name for name in known if not _is_used(name)}
    usable = {name: node for name, node in known.items() if _is_usable(draft, name, node)}
    return _connection(draft, usable) | _volbench_keys(draft, usable)


def _is_used(name: str) -> bool:
    return name.startswith(PREFIX) or name in _USED


def _is_usable(draft: InventoryDraft, name: str, node: Node) -> bool:
    """Record unsupported variables: secrets, other become methods, templates, vaults."""
    if name in _REFUSED:
        draft.complain(node, "volbench does not use this variable", hint=_REFUSED[name])
        return False
    if name in _ONE_VALUE and node.raw not in _ONE_VALUE[name][0]:
        draft.complain(node, f"{node.raw!r} is not supported", hint=_ONE_VALUE[name][1])
        return False
    return not _is_used(name) or _is_plain(draft, node)


def _is_plain(draft: InventoryDraft, node: Node) -> bool:
    """Record a value that only Ansible can evaluate, at any depth."""
    text = node.raw if isinstance(node.raw, str) else ""
    vaulted = any(entry.name == "__ansible_vault" for entry in node.entries or ())
    reason = ""
    if "{{" in text or "{%" in text:
        reason = "a template, which volbench does not evaluate"
    elif text.startswith("$ANSIBLE_VAULT") or vaulted:
        reason = "an encrypted value, and volbench opens no vault"
    if reason:
        draft.complain(node, reason, hint="write the value")
        return False
    below = (*(entry.value for entry in node.entries or ()), *(node.items or ()))
    return not [child for child in below if not _is_plain(draft, child)]


def _connection(draft: InventoryDraft, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return the keys from Ansible's own variables."""
    fields: dict[str, Node] = {}
    for key, names in _SAME.items():
        first = next((known[name] for name in names if name in known), None)
        if first is not None and not (key == "python" and first.raw in _DISCOVERY):
            fields[key] = first
    for name in _ARGUMENTS:
        if name in known:
            fields |= _jump_of(draft, name, known[name])
    kind = known.get("ansible_connection")
    if kind is not None and kind.raw in _LOCAL:
        address = {"address": replace(kind, raw=LOCAL)}
        return {name: fields[name] for name in ("sudo",) if name in fields} | address
    if kind is not None and kind.raw not in _SSH:
        draft.complain(
            kind, f"volbench connects by ssh, not by {kind.raw}", hint="leave such hosts out"
        )
    return fields


def _volbench_keys(draft: InventoryDraft, known: Mapping[str, Node]) -> dict[str, Node]:
    """Return the keys from the variables with volbench's prefix."""
    fields: dict[str, Node] = {}
    single: dict[str, list[Entry]] = {}
    for name, node in known.items():
        if not name.startswith(PREFIX):
            continue
        key = name.removeprefix(PREFIX)
        kind = next((start for start in _SINGLE if key.startswith(start)), "")
        if key in HOST_KEYS:
            fields[key] = node
        elif kind and key != kind:
            entry = Entry(key.removeprefix(kind), node.line, node.column, node)
            single.setdefault(_SINGLE[kind], []).append(entry)
        else:
            near = nearest(name, [PREFIX + known_key for known_key in HOST_KEYS])
            hint = f"did you mean `{near}`?" if near else f"known are {', '.join(HOST_KEYS)}"
            draft.complain(node, f"unknown variable {name!r}", hint=hint)
    for key, entries in single.items():  # override the entries of a mapping
        at = fields.get(key) or entries[0].value
        before = draft.entries(at, f"{PREFIX}{key}") if key in fields else ()
        merged = {entry.name: entry for entry in (*before, *entries)}
        fields[key] = Node(at.line, at.column, at.key, entries=tuple(merged.values()))
    for start, key in _SINGLE.items():
        if key in fields and fields[key].is_scalar:
            node = fields.pop(key)
            hint = f"write {PREFIX}{start}NAME=VALUE, or a mapping between quotes"
            draft.complain(node, f"{key} must be a mapping, this is {node.kind}", hint=hint)
    return fields


def _jump_of(draft: InventoryDraft, name: str, node: Node) -> dict[str, Node]:
    """Return the jump hosts in arguments for ssh(1).

    They are ``-J``, ``-o ProxyJump`` and a ``ProxyCommand`` that is only ``ssh -W %h:%p BASTION``.
    Options on host keys are reported; any other that would change the route is refused.
    """
    text = draft.text(node, name)
    jump: dict[str, Node] = {}
    try:
        for option, value in _ssh_options(shlex.split(text)):
            if option == "proxyjump":
                jump["jump"] = replace(node, raw=value)
            elif option == "proxycommand":
                jump["jump"] = replace(node, raw=_hop_of_command(value))
            elif option in _OF_HOST_KEYS:
                draft.notes.append(
                    f"{name} sets {option} to {value!r}; volbench checks host keys in its own way"
                )
            elif option not in _WITHOUT_MEANING:
                draft.complain(
                    node,
                    f"the ssh option {option} is not supported",
                    hint="write a Host block in ~/.ssh/config, and its alias as ansible_host",
                )
                break
    except ValueError:
        draft.complain(node, "a quote is not closed")
    except InputError as error:
        draft.complain(node, error.message, hint=error.hint)
    return jump


def _ssh_options(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield keyword and value of every option, in the form of ssh_config(5)."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _BARE:
            continue
        if argument[:2] not in {"-J", "-o"}:
            yield argument, ""
            continue
        value = argument[2:] or next(rest, "")
        if argument.startswith("-J"):
            yield "proxyjump", value
            continue
        separator = "=" if "=" in value else " "
        keyword, _, setting = value.partition(separator)
        yield keyword.strip().lower(), setting.strip()


def _hop_of_command(text: str) -> str:
    """Return the hop of a ``ProxyCommand`` that only forwards to the host."""
    arguments = shlex.split(text)
    login: str | None = None
    port_number: int | None = None
    names: list[str] = []
    target = ""
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "-W":
            target = next(rest, "")
        elif argument == "-l":
            login = check_user(next(rest, ""))
        elif argument == "-p":
            port_number = check_port(next(rest, ""))
        elif argument.startswith("-"):
            names += [] if argument in _BARE else ["", ""]
        else:
            names.append(argument)
    if arguments[:1] != ["ssh"] or target.strip("[]") not in {"%h:%p", "%h]:%p"} or len(names) != 1:
        raise InputError(
            f"ProxyCommand {text!r} does more than forward to the host",
            hint="write -o ProxyJump=BASTION, and any other settings in ~/.ssh/config",
        )
    named, sign, host = names[0].rpartition("@")
    return hop_text(named if sign else login, host, port_number)


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


def read_ansible(draft: InventoryDraft, path: Path, top: Node | None = None) -> None:
    """Read the hosts and groups of an Ansible inventory."""
    if top is None or not _is_listing(top):
        parsers = (INI, YAML) if path.is_dir() else (INI,) if top is None else (YAML,)
        listing, warnings = list_inventory(path, parsers=parsers)
    elif not _is_merged(top):
        listing, warnings = list_groups(_as_groups(_plain_value(top)), path)
    else:
        _read_listing(draft, top)
        return
    draft.notes += [f"Ansible warns: {warning}" for warning in warnings]
    # Without places: the key of a variable is HOST.VARIABLE
    hosts = node_of(listing.get(_META, {}).get("hostvars", {}), Node(0, 0, ""))
    meta = Node(0, 0, _META, entries=(Entry("hostvars", 0, 0, hosts),))
    groups = node_of({k: v for k, v in listing.items() if k != _META}, Node(0, 0, ""))
    _read_listing(
        draft, Node(0, 0, "", entries=(*(groups.entries or ()), Entry(_META, 0, 0, meta)))
    )


def _is_listing(top: Node) -> bool:
    """Whether a document is a JSON listing, where hosts are lists, not Ansible's YAML."""
    entries = top.entries or ()
    return any(entry.name == _META or entry.value.items is not None for entry in entries) or any(
        key.name in {"hosts", "children"} and key.value.items is not None
        for entry in entries
        for key in entry.value.entries or ()
    )


def _is_merged(top: Node) -> bool:
    """Whether the variables of groups are merged into those of their hosts."""
    entries = {entry.name: entry.value for entry in top.entries or ()}
    return _META in entries and not any(
        key.name == "vars" for group in entries.values() for key in group.entries or ()
    )


def _plain_value(node: Node) -> Any:  # noqa: ANN401 - JSON
    if node.entries is not None:
        return {entry.name: _plain_value(entry.value) for entry in node.entries}
    return node.raw if node.items is None else [_plain_value(item) for item in node.items]


def _as_groups(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Return a listing in the structure of Ansible's YAML, for Ansible to merge its variables."""
    groups: dict[str, Any] = {ALL: {"hosts": dict(listing.get(_META, {}).get("hostvars", {}))}}
    for name, group in listing.items():
        if name == _META:
            continue
        written = {"hosts": group} if isinstance(group, list) else group
        made = groups.setdefault(name, {})
        for key in ("hosts", "children"):
            made[key] = dict.fromkeys(written.get(key, ())) | made.get(key, {})
        made["vars"] = written.get("vars", {})
    return groups


def _read_listing(draft: InventoryDraft, top: Node) -> None:
    """Read the hosts of a listing in group order, with the variables that volbench uses."""
    groups = {entry.name: entry for entry in top.entries or () if entry.name != _META}
    variables: dict[str, Node] = {}
    for entry in top.entries or ():
        for key in draft.entries(entry.value, _META) if entry.name == _META else ():
            if key.name == "hostvars":  # other keys include the profile of the encoder
                hosts = draft.entries(key.value, "hostvars")
                variables |= {host.name: host.value for host in hosts}
    unused: set[str] = set()
    for name, at in (dict(_members(draft, groups, ALL, set())) | variables).items():
        fields = _fields(draft, variables[name], unused) if name in variables else {}
        # A listing does not distinguish the jump hosts of a host from those of a group that also
        # contains the jump host.
        inherited = {key: fields.pop(key) for key in ("jump",) if key in fields}
        draft.add(HostDraft(name, at, fields, inherited))
    if not draft.hosts and not draft.problems.found:
        draft.problems.add("an inventory needs hosts", line=1, column=1)
    for name, entry in groups.items():
        # Children without hosts are not listed, and omitted here.
        children = {n: at for n, at in _listed(draft, entry, "children").items() if n in groups}
        group = GroupDraft(location(entry), _listed(draft, entry, "hosts"), children)
        if name not in {ALL, _UNGROUPED} or group.hosts:
            draft.is_name(location(entry), name, "a group")
            draft.groups[name] = group
    if unused:
        draft.notes.append(f"not used by volbench: {', '.join(sorted(unused))}")


def _listed(draft: InventoryDraft, entry: Entry, key: str) -> dict[str, Node]:
    """Return the names under ``hosts`` or ``children`` of a group, with their locations."""
    nodes = {child.name: child.value for child in draft.entries(entry.value, "a group")}
    items = draft.items(nodes[key], key) if key in nodes else ()
    return {draft.given(item, f"an entry of {key}"): item for item in items}


def _members(
    draft: InventoryDraft, groups: Mapping[str, Entry], name: str, visited: set[str]
) -> Iterator[tuple[str, Node]]:
    """Yield the hosts of a group and its descendants, visiting each group once."""
    if name in visited or name not in groups:
        return
    visited.add(name)
    yield from _listed(draft, groups[name], "hosts").items()
    for child in _listed(draft, groups[name], "children"):
        yield from _members(draft, groups, child, visited)


def list_inventory(path: Path, *, parsers: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the output of ``ansible-inventory --list`` for a file or folder, and its warnings."""
    # The folder of this Python comes first, for venvs that are not activated.
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    program = shutil.which(_PROGRAM, path=os.pathsep.join(folders))
    if program is None:
        raise InventoryError(
            f"{path} is an Ansible inventory, and {_PROGRAM} is not installed",
            hint=f"install it ({install_command('ansible')}), write the inventory in volbench's "
            f"own YAML, or run `{_PROGRAM} -i {path} --list > hosts.json` elsewhere and use that "
            "file",
        )
    with tempfile.TemporaryDirectory(prefix="volbench-ansible-") as folder:
        done = _run_ansible(program, path, Path(folder), parsers)
    if done.returncode != 0:
        raise _ansible_failed(path, done.stderr)
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


def _run_ansible(
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


def _ansible_failed(path: Path, stderr: str) -> InventoryError:
    """Return the error with Ansible's reason and location."""
    cause = stderr.rpartition(_CAUSE)[2].partition("Origin: ")[0] if _CAUSE in stderr else stderr
    reason = " ".join(cause.split())[:500] or "no reason given"
    named = next((hits[-1] for pattern in _PLACES if (hits := pattern.findall(stderr))), None)
    file, line, column = named or (str(path), "", "")
    message = f"Ansible cannot read it: {reason}"
    if not Path(file).absolute().is_relative_to(path.absolute()):  # a copy for Ansible
        return _problem(path, message)
    inside = path / Path(file).absolute().relative_to(path.absolute())
    return _problem(inside, message, line=int(line or 0), column=int(column or 0))


def _problem(path: Path, message: str, *, line: int = 0, column: int = 0) -> InventoryError:
    problem = Problem(message, str(path), line, column)
    return InventoryError(str(problem), problems=[problem])
