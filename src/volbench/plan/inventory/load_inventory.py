"""Loader of inventories in all formats, with located problems; reader of volbench's own format."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from volbench.errors import InventoryError, Problems
from volbench.model.campaign.host import Inventory
from volbench.model.document.located_errors import Entry, Node
from volbench.model.document.yaml_text import parse_document
from volbench.plan.inventory.host_document import HOST_KEYS, OWN_KEYS, read_defaults, read_host
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet, at, with_text
from volbench.plan.inventory.host_names import ALL, Expansion
from volbench.plan.inventory.host_references import (
    Aliases,
    check_duplicates,
    read_aliases,
    resolve_groups,
    resolve_hops,
)
from volbench.plan.inventory.terraform_outputs import is_terraform, read_terraform
from volbench.slices import is_present, load


def read_own(reader: HostReader, top: Node) -> Sheet:
    """Return the content of an inventory in volbench's own YAML."""
    entries = {entry.name: entry for entry in reader.entries(top, "an inventory")}
    for entry in entries.values():
        if entry.name not in OWN_KEYS:
            reader.unknown(entry, OWN_KEYS, "an inventory")
    defaults = read_defaults(reader, entries["defaults"].value) if "defaults" in entries else {}
    sheet = Sheet()
    if "hosts" in entries:
        for draft in _drafts(reader, entries["hosts"].value, defaults):
            sheet.add(reader, draft)
    if not sheet.drafts and not reader.problems.found:
        place = entries["hosts"].value if "hosts" in entries else top
        reader.complain(place, "an inventory needs hosts", key="hosts")
    if "groups" in entries:
        _read_groups(reader, entries["groups"].value, sheet)
    return sheet


def _drafts(reader: HostReader, node: Node, defaults: Mapping[str, Node]) -> Iterator[Draft]:
    if node.items is not None:
        for item in node.items:
            name = reader.given(item, "a host")
            for text in reader.expanded(item, name).texts if name else ():
                yield Draft(text, item, {}, defaults)
        return
    for entry in reader.entries(node, "hosts"):
        yield from _of_entry(reader, entry, defaults)


def _of_entry(reader: HostReader, entry: Entry, defaults: Mapping[str, Node]) -> Iterator[Draft]:
    if entry.value.is_scalar and not entry.value.is_null:
        reader.complain(
            entry.value,
            f"a host must be a mapping, this is {entry.value.kind}",
            hint=f"write {{address: {entry.value.raw}}}",
        )
        return
    own = {field.name: field.value for field in reader.known(entry.value, HOST_KEYS, "a host")}
    names = reader.expanded(at(entry), entry.name)
    places = _addresses(reader, names, own.get("address"))
    for number, name in enumerate(names.texts):
        fields = own if places is None else own | {"address": places[number]}
        yield Draft(name, at(entry), fields, defaults)


def _addresses(reader: HostReader, names: Expansion, node: Node | None) -> list[Node] | None:
    """Return the address of each name of a range; None where the address has no range."""
    if node is None or not isinstance(node.raw, str) or not names.texts:
        return None
    if not names.shape and node.raw.startswith("[") and node.raw.endswith("]"):
        return None  # an IPv6 address in brackets
    found = reader.expanded(node, node.raw)
    if len(names.texts) == 1 and len(found.texts) == 1:
        return [with_text(node, found.texts[0])]
    if found.shape != names.shape and found.texts:
        reader.complain(
            node,
            f"{_counted(names, 'name')}, {_counted(found, 'address')}",
            hint="give the address as many ranges as the name, each of the same length",
        )
        return None
    return [with_text(node, text) for text in found.texts] or None


def _counted(found: Expansion, what: str) -> str:
    several = what + ("es" if what.endswith("s") else "s")
    count = len(found.texts)
    shape = f" ({' x '.join(map(str, found.shape))})" if len(found.shape) > 1 else ""
    return f"{count} {what if count == 1 else several}{shape}"


def _read_groups(reader: HostReader, node: Node, sheet: Sheet) -> None:
    entries = reader.entries(node, "groups")
    names = {entry.name for entry in entries}
    for entry in entries:
        if entry.name == ALL:
            reader.complain(entry, "all is the group of all hosts", hint="give it another name")
        elif reader.is_name(at(entry), entry.name, "a group"):
            hosts, children = _members(reader, entry, names, sheet)
            sheet.groups[entry.name] = GroupDraft(entry.name, at(entry), hosts, children)


def _members(
    reader: HostReader, entry: Entry, groups: set[str], sheet: Sheet
) -> tuple[dict[str, Node], dict[str, Node]]:
    hosts: dict[str, Node] = {}
    children: dict[str, Node] = {}
    node = entry.value
    for item in (node,) if node.is_scalar else reader.items(node, "a group"):
        text = reader.given(item, "a member of a group")
        if text in groups and text not in sheet.drafts:
            children[text] = item
        elif text:
            hosts |= dict.fromkeys(reader.expanded(item, text).texts, item)
    return hosts, children


# Seam: references (see `slices.load`) of whether a document, or None for a text that is not
# YAML and for a folder, is of a format, and of its reader; the first that matches reads it, and
# volbench's own YAML is read where none does
READERS = (("plan.inventory.ansible:is_ansible", "plan.inventory.ansible:read_ansible"),)

_LOG = logging.getLogger(__name__)

_YAML_LINE = re.compile(r"(---|%YAML|\{|- |[^=]*?:(\s|$))")
_ASK_ANSIBLE = "write Ansible's listing: ansible-inventory -i {path} --list > hosts.json"
_NEEDS = "hosts"
# Values in an inventory, after aliases are expanded: ten thousand hosts with fifty each
_MAX_VALUES = 500_000


def load_inventory(
    path: Path | str,
    *,
    mapping: Path | str | None = None,
    ssh_config: Path | str | None = None,
    on_note: Callable[[str], None] = _LOG.warning,
) -> Inventory:
    """Return an inventory from volbench's own YAML, an Ansible inventory, or Terraform's outputs.

    ``ansible-inventory`` is run for Ansible's INI, YAML and folders, without any inventory script
    or plugin. No host is connected to.

    Args:
        ssh_config: OpenSSH's client configuration, to detect aliases of the same machine; None to
            use names unresolved.
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
    """Return the inventory, and record problems; it is only valid without any."""
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
    return InventoryError(f"{path} {reason}", hint=hint)


def _sheet(path: Path, *, mapping: Path | None) -> tuple[HostReader, Sheet]:
    """Detect the format of an inventory and read it; return the reader with its problems too."""
    reader = HostReader(Problems(str(path)))
    text = "" if path.is_dir() else _text(path)
    top = None
    if not path.is_dir() and _is_yaml(text, path):
        top = parse_document(
            text, reader.problems, what="an inventory", needs=_NEEDS, most_values=_MAX_VALUES
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
    for is_of_format, read in READERS:
        if is_present(read) and load(is_of_format)(top):
            return reader, load(read)(reader, path, top)
    if top is None:
        raise AssertionError("Ansible reads what is not YAML")
    _refuse_foreign(top, path)
    return reader, read_own(reader, top)


def _is_yaml(text: str, path: Path) -> bool:
    """Whether a text is YAML or JSON, not INI: by suffix, or else by the first non-empty line."""
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
        ) from error
    outputs = {name: output["value"] for name, output in document.items()}
    if mapping is None:
        raise _refused(
            path,
            "is Terraform's output, which needs a mapping to hosts",
            f"write a mapping and pass it with --mapping; outputs are {', '.join(outputs)}",
        )
    reader = HostReader(Problems(str(mapping)))
    top = parse_document(_text(mapping), reader.problems, what="a mapping", needs=_NEEDS)
    _raise_if_any(reader.problems)
    if top is None:
        raise AssertionError("a document without a mapping has a problem")
    return reader, read_terraform(reader, outputs, top)


def _refuse_foreign(top: Node, path: Path) -> None:
    """Refuse files that are not inventories, but can be converted to one."""
    names = {entry.name for entry in top.entries or ()} - set(OWN_KEYS)
    if "terraform_version" in names:
        raise _refused(
            path,
            "is a Terraform state; only its outputs are needed",
            "write them: terraform output -json > outputs.json",
        )
    if "plugin" in names:
        raise _refused(
            path,
            "configures an Ansible plugin, which volbench does not run",
            _ASK_ANSIBLE.format(path=path),
        )
