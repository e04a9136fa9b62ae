"""Reader of Ansible inventories, from the output of ``ansible-inventory --list``.

Files in Ansible's INI or YAML are converted by ``ansible-inventory``, which resolves groups, ranges
and variables. Only its parsers of static files are enabled: no inventory script, no inventory
plugin and no ``ansible.cfg`` of the current folder is used. JSON listings are read directly, so
that a listing created elsewhere can be used without Ansible.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from volbench.errors import InventoryError, Problem
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.ansible_variables import fields_of
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet, at, node_of
from volbench.plan.inventory.host_entries import OWN_KEYS
from volbench.plan.inventory.host_names import ALL

_META = "_meta"
_GROUP_KEYS = {"hosts", "vars", "children"}
_UNGROUPED = "ungrouped"


def is_ansible(top: Node) -> bool:
    """Whether a document consists of Ansible's groups."""
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
            hint="install ansible-core (pip install 'volbench[ansible]'), write the inventory in "
            f"volbench's own YAML, or run `{_PROGRAM} -i {path} --list > hosts.json` elsewhere "
            "and use that file",
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
            f"{program} cannot be started: {error.strerror or error}",
            hint="reinstall ansible-core",
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
