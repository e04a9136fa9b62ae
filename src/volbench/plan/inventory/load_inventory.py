"""A file of any kind in, an Inventory out, or every problem in it with file, line and column."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

from volbench.errors import InventoryError, Problems
from volbench.model.campaign.host import Inventory
from volbench.model.document.yaml_nodes import Node, parse_document
from volbench.plan.inventory.ansible_ini import read_ini
from volbench.plan.inventory.ansible_tree import sheet_of
from volbench.plan.inventory.ansible_yaml import is_ansible, read_groups
from volbench.plan.inventory.assemble import assemble
from volbench.plan.inventory.draft import HostReader, Sheet
from volbench.plan.inventory.own import OWN_KEYS, read_own
from volbench.plan.inventory.sshconfig import Aliases, read_aliases
from volbench.plan.inventory.terraform import is_terraform, read_terraform

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
    tell: Callable[[str], None] = _LOG.warning,
) -> Inventory:
    """Read a list of hosts: our own YAML, Ansible's INI, YAML or JSON, or Terraform's outputs.

    Nothing is run and nobody is connected to.

    Args:
        path: the file.
        mapping: file that says which of Terraform's outputs tells what.
        ssh_config: OpenSSH's client configuration, by which two aliases are known to be one
            machine; None to take names as they are.
        tell: is called with each remark on what was left aside, such as variables of Ansible's.

    Raises:
        InventoryError: everything that is wrong in it, in file order.
    """
    path = Path(path)
    text = _text(path)
    reader = HostReader(Problems(str(path)))
    aliases = Aliases() if ssh_config is None else read_aliases(Path(ssh_config))
    sheet = _sheet(reader, text, path, mapping=None if mapping is None else Path(mapping))
    inventory = assemble(reader, sheet, aliases)
    _raise_if_any(reader.problems)
    for note in dict.fromkeys(reader.notes):
        tell(f"{path}: {note}")
    return inventory


def _raise_if_any(*collections: Problems) -> None:
    found = [problem for problems in collections for problem in problems.in_order()]
    if found:
        raise InventoryError("\n".join(map(str, found)), problems=found)


def _text(path: Path) -> str:
    if path.is_dir():
        raise InventoryError(
            f"{path} is a folder, not a list of hosts",
            hint=_ASK_ANSIBLE.format(path=path),
            context={"path": str(path)},
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InventoryError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="save it as UTF-8",
            context={"path": str(path)},
        ) from error
    except OSError as error:
        raise InventoryError(
            f"{path} can't be read: {error.strerror or error}",
            hint="name a file with a list of hosts",
            context={"path": str(path)},
        ) from error
    if text.startswith("#!"):
        raise InventoryError(
            f"{path} is a program; volbench runs none",
            hint=_ASK_ANSIBLE.format(path=path),
            context={"path": str(path)},
        )
    return text


def _sheet(reader: HostReader, text: str, path: Path, *, mapping: Path | None) -> Sheet:
    """Find out what kind of file it is, and read it."""
    top = None
    if _is_yaml(text, path):
        top = parse_document(
            text, reader.problems, what="an inventory", needs=_NEEDS, most_values=_MOST_VALUES
        )
        _raise_if_any(reader.problems)
    if top is not None and is_terraform(top):
        return _from_terraform(reader, top, mapping)
    if mapping is not None:
        raise InventoryError(
            f"{path} does not need a mapping",
            hint="a mapping is for the output of `terraform output -json`; leave --mapping out",
            context={"path": str(path)},
        )
    if top is None:
        return sheet_of(reader, read_ini(reader, text), path)
    if is_ansible(top):
        return sheet_of(reader, read_groups(reader, top), path)
    _refuse_foreign(top, path)
    return read_own(reader, top)


def _is_yaml(text: str, path: Path) -> bool:
    """Tell YAML and JSON from INI: by the ending, or else by the first line that says something."""
    if path.suffix.lower() in {".yaml", ".yml", ".json"}:
        return True
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;")
    first = next(lines, "")
    return path.suffix.lower() != ".ini" and bool(_YAML_LINE.match(first))


def _from_terraform(reader: HostReader, top: Node, mapping: Path | None) -> Sheet:
    outputs = {entry.name: entry.value for entry in top.entries or ()}
    if mapping is None:
        raise InventoryError(
            f"{reader.problems.path} is Terraform's output, and nothing says what is a host in it",
            hint=f"write a mapping and name it with --mapping; outputs are {', '.join(outputs)}",
            context={"path": reader.problems.path},
        )
    asked = HostReader(Problems(str(mapping)))
    document = parse_document(_text(mapping), asked.problems, what="a mapping", needs=_NEEDS)
    _raise_if_any(asked.problems)
    if document is None:
        raise AssertionError("a document without a mapping has a problem")
    sheet = read_terraform(reader, asked, top, document)
    _raise_if_any(asked.problems, reader.problems)
    return sheet


def _refuse_foreign(top: Node, path: Path) -> None:
    """Refuse files that are near to an inventory, with the way to one."""
    names = {entry.name for entry in top.entries or ()} - set(OWN_KEYS)
    if "terraform_version" in names:
        raise InventoryError(
            f"{path} is a state of Terraform's; its outputs alone are needed",
            hint="write them: terraform output -json > outputs.json",
            context={"path": str(path)},
        )
    if "plugin" in names:
        raise InventoryError(
            f"{path} configures a plugin of Ansible's; volbench runs none",
            hint=_ASK_ANSIBLE.format(path=path),
            context={"path": str(path)},
        )
