"""Loader of inventories of every kind, with every problem named by file, line and column."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from volbench.errors import InventoryError, Problems
from volbench.model.campaign.host import Inventory
from volbench.model.document.yaml_nodes import Node
from volbench.model.document.yaml_text import parse_document
from volbench.plan.inventory.ansible_listing import is_ansible, read_ansible
from volbench.plan.inventory.host_drafts import HostReader, Sheet
from volbench.plan.inventory.host_entries import OWN_KEYS, read_host
from volbench.plan.inventory.host_references import (
    Aliases,
    check_duplicates,
    read_aliases,
    resolve_groups,
    resolve_hops,
)
from volbench.plan.inventory.own_yaml import read_own
from volbench.plan.inventory.terraform_outputs import is_terraform, read_terraform

_LOG = logging.getLogger(__name__)

_YAML_LINE = re.compile(r"(---|%YAML|\{|- |[^=]*?:(\s|$))")
_ASK_ANSIBLE = "write what Ansible makes of it: ansible-inventory -i {path} --list > hosts.json"
_NEEDS = "hosts"
_MOST_VALUES = 500_000
"""Values an inventory may have: ten thousand hosts with fifty each."""


def load_inventory(
    path: Path | str,
    *,
    mapping: Path | str | None = None,
    ssh_config: Path | str | None = None,
    on_note: Callable[[str], None] = _LOG.warning,
) -> Inventory:
    """Read a list of hosts: volbench's own YAML, an Ansible inventory, or Terraform's outputs.

    ``ansible-inventory`` is run for Ansible's INI, YAML and folders, without any inventory script
    or plugin. No host is connected to.

    Args:
        path: the file, or a folder of Ansible's.
        mapping: file that says where in Terraform's outputs the hosts are.
        ssh_config: OpenSSH's client configuration, by which two aliases are known to be one
            machine; None to take names as they are.
        on_note: called with each note, such as an Ansible variable that volbench ignores.

    Raises:
        InventoryError: everything that is wrong in it, in file order.
    """
    path = Path(path)
    aliases = Aliases() if ssh_config is None else read_aliases(Path(ssh_config))
    reader, sheet = _sheet(path, mapping=None if mapping is None else Path(mapping))
    inventory = _assemble(reader, sheet, aliases)
    _raise_if_any(reader.problems)
    for note in dict.fromkeys(reader.notes):
        on_note(f"{path}: {note}")
    return inventory


def _assemble(reader: HostReader, sheet: Sheet, aliases: Aliases) -> Inventory:
    """Return the inventory, with problems noted; it is of no use when there are any."""
    hosts = {name: read_host(reader, draft) for name, draft in sheet.drafts.items()}
    hosts = resolve_hops(reader, sheet.drafts, hosts)
    check_duplicates(reader, sheet.drafts, hosts, aliases)
    groups = resolve_groups(reader, sheet)
    return Inventory(hosts=tuple(hosts.values()), groups=groups)


def _raise_if_any(problems: Problems) -> None:
    found = problems.in_order()
    if found:
        raise InventoryError("\n".join(map(str, found)), problems=found)


def _text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(
            path, f"is not UTF-8 text: {error.reason} at byte {error.start}", "save it as UTF-8"
        ) from error
    except OSError as error:
        raise _refused(
            path, f"cannot be read: {error.strerror or error}", "name a file with a list of hosts"
        ) from error
    if text.startswith("#!"):
        raise _refused(
            path, "is a program, which volbench does not run", _ASK_ANSIBLE.format(path=path)
        )
    return text


def _refused(path: Path, reason: str, hint: str) -> InventoryError:
    return InventoryError(f"{path} {reason}", hint=hint, context={"path": str(path)})


def _sheet(path: Path, *, mapping: Path | None) -> tuple[HostReader, Sheet]:
    """Find out what kind of inventory it is, and read it; return also who notes its problems."""
    reader = HostReader(Problems(str(path)))
    text = "" if path.is_dir() else _text(path)
    top = None
    if not path.is_dir() and _is_yaml(text, path):
        top = parse_document(
            text, reader.problems, what="an inventory", needs=_NEEDS, most_values=_MOST_VALUES
        )
        _raise_if_any(reader.problems)
    if top is not None and is_terraform(top):
        return _from_terraform(text, path, mapping)
    if mapping is not None:
        raise _refused(
            path,
            "does not need a mapping",
            "a mapping is for the output of `terraform output -json`; leave --mapping out",
        )
    if top is None or is_ansible(top):
        return reader, read_ansible(reader, path, top)
    _refuse_foreign(top, path)
    return reader, read_own(reader, top)


def _is_yaml(text: str, path: Path) -> bool:
    """Tell YAML and JSON from INI: by the suffix, or else by the first line with content."""
    if path.suffix.lower() in {".yaml", ".yml", ".json"}:
        return True
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;")
    first = next(lines, "")
    return path.suffix.lower() != ".ini" and bool(_YAML_LINE.match(first))


def _from_terraform(text: str, path: Path, mapping: Path | None) -> tuple[HostReader, Sheet]:
    try:
        document: dict[str, dict[str, Any]] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InventoryError(
            f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
            hint="write it with: terraform output -json > outputs.json",
            context={"path": str(path)},
        ) from error
    outputs = {name: output["value"] for name, output in document.items()}
    if mapping is None:
        raise _refused(
            path,
            "is Terraform's output, and nothing says what is a host in it",
            f"write a mapping and name it with --mapping; outputs are {', '.join(outputs)}",
        )
    reader = HostReader(Problems(str(mapping)))
    top = parse_document(_text(mapping), reader.problems, what="a mapping", needs=_NEEDS)
    _raise_if_any(reader.problems)
    if top is None:
        raise AssertionError("a document without a mapping has a problem")
    return reader, read_terraform(reader, outputs, top)


def _refuse_foreign(top: Node, path: Path) -> None:
    """Refuse files that are not inventories themselves, but from which one can be made."""
    names = {entry.name for entry in top.entries or ()} - set(OWN_KEYS)
    if "terraform_version" in names:
        raise _refused(
            path,
            "is a state of Terraform's; only its outputs are needed",
            "write them: terraform output -json > outputs.json",
        )
    if "plugin" in names:
        raise _refused(
            path,
            "configures a plugin of Ansible's, which volbench does not run",
            _ASK_ANSIBLE.format(path=path),
        )
