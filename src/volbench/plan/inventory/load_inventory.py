"""Loader of inventories, with located problems; reader of volbench's own format."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from volbench.errors import InventoryError, Problems, quoted, unread
from volbench.extension import extensions, load
from volbench.model.campaign.host import Inventory
from volbench.model.document.located_errors import Entry, Node
from volbench.model.document.yaml_text import parse_document
from volbench.plan.inventory.ansible import META, is_of_ansible, read_listing
from volbench.plan.inventory.host_document import HOST_KEYS, OWN_KEYS
from volbench.plan.inventory.host_drafts import GroupDraft, HostDraft, InventoryDraft, location
from volbench.plan.inventory.host_names import ALL, Expansion
from volbench.plan.inventory.host_references import check_duplicates, resolve_groups, resolve_hops

_LOG = logging.getLogger(__name__)
_YAML_LINE = re.compile(r"(---|%YAML|\{|- |[^=]*?:(\s|$))")
_ASK_ANSIBLE = (
    "for an inventory of Ansible: ansible-inventory -i {} --list > hosts.json; other sources:"
    " docs/reference/inventory.md"
)
_NEEDS = "hosts"
# Values in an inventory, after aliases are expanded: ten thousand hosts with fifty each
_MAX_VALUES = 500_000
_MAX_BYTES = 64 << 20


def load_inventory(
    path: Path | str, content: str = "", *, on_note: Callable[[str], None] = _LOG.warning
) -> Inventory:
    """Return the inventory of a file or its content: volbench's YAML or JSON, or Ansible's JSON."""
    path = Path(path)
    draft = _read_draft(path, content or _read_text(path))
    hosts = {name: draft.host(host) for name, host in draft.hosts.items()}
    hosts = resolve_hops(draft, hosts)
    check_duplicates(draft, hosts)
    groups = resolve_groups(draft)
    _raise_if_any(draft.problems)
    for note in draft.notes:
        on_note(f"{path}: {note}")
    return Inventory(hosts=tuple(hosts.values()), groups=groups)


def _read_own(draft: InventoryDraft, top: Node) -> None:
    nodes = {entry.name: entry.value for entry in draft.entries(top, "an inventory", OWN_KEYS)}
    defaults = draft.defaults(nodes.get("defaults"))
    if "hosts" in nodes:
        for host in _hosts(draft, nodes["hosts"], defaults):
            draft.add(host)
    if not draft.hosts and not draft.problems.found:
        draft.complain(nodes.get("hosts", top), "an inventory needs hosts", key="hosts")
    groups = list(draft.entries(nodes["groups"], "groups")) if "groups" in nodes else []
    for entry in groups:
        if entry.name == ALL:
            draft.complain(entry, "all is the group of all hosts", hint="give it another name")
        elif draft.is_name(location(entry), entry.name, "a group"):
            names = {group.name for group in groups}
            draft.groups[entry.name] = _group(draft, entry, names)


def _hosts(draft: InventoryDraft, node: Node, defaults: Mapping[str, Node]) -> Iterator[HostDraft]:
    if node.items is not None:
        for item in node.items:
            name = draft.given(item, "a host")
            for text in draft.expanded(item, name).texts if name else ():
                yield HostDraft(text, item, {}, defaults)
        return
    for entry in draft.entries(node, "hosts"):
        if entry.value.is_scalar and not entry.value.is_null:
            message = f"a host must be a mapping, this is {entry.value.kind}"
            draft.complain(entry.value, message, hint=f"write {{address: {entry.value.raw}}}")
            continue
        keys = () if entry.value.is_null else draft.entries(entry.value, "a host", HOST_KEYS)
        values = {key.name: key.value for key in keys}
        names = draft.expanded(location(entry), entry.name)
        addresses = _addresses(draft, names, values.get("address"))
        for number, name in enumerate(names.texts):
            fields = values if addresses is None else values | {"address": addresses[number]}
            yield HostDraft(name, location(entry), fields, defaults)


def _addresses(draft: InventoryDraft, names: Expansion, node: Node | None) -> list[Node] | None:
    """Return the address of each name of a range; None where the address has no range."""
    if node is None or not isinstance(node.raw, str) or not names.texts:
        return None
    if not names.shape and node.raw.startswith("[") and node.raw.endswith("]"):
        return None  # an IPv6 address in brackets
    addresses = draft.expanded(node, node.raw)
    is_single = len(names.texts) == len(addresses.texts) == 1
    if addresses.shape != names.shape and addresses.texts and not is_single:
        message = (
            f"{_counted(names, 'name', 'names')}, {_counted(addresses, 'address', 'addresses')}"
        )
        hint = "give the address as many ranges as the name, each of the same length"
        draft.complain(node, message, hint=hint)
        return None
    return [replace(node, raw=text) for text in addresses.texts] or None


def _counted(expansion: Expansion, single: str, several: str) -> str:
    count, shape = len(expansion.texts), expansion.shape
    sizes = f" ({' x '.join(map(str, shape))})" if len(shape) > 1 else ""
    return f"{count} {single if count == 1 else several}{sizes}"


def _group(draft: InventoryDraft, entry: Entry, groups: set[str]) -> GroupDraft:
    hosts: dict[str, Node] = {}
    children: dict[str, Node] = {}
    node = entry.value
    for item in (node,) if node.is_scalar else draft.items(node, "a group"):
        text = draft.given(item, "a member of a group")
        if text in groups and text not in draft.hosts:
            children[text] = item
        elif text:
            hosts |= dict.fromkeys(draft.expanded(item, text).texts, item)
    return GroupDraft(location(entry), hosts, children)


def _raise_if_any(problems: Problems) -> None:
    if listed := problems.in_order():
        raise InventoryError("\n".join(map(str, listed)), problems=listed)


def _read_text(path: Path) -> str:
    if path.is_fifo() and path.parts[1:2] not in (("dev",), ("proc",)):
        raise _refused(path, "is a pipe", "name a file, or /dev/stdin")
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, f"cannot be read: {unread(error)}", "name a UTF-8 file") from error
    if len(text) > _MAX_BYTES:
        raise _refused(path, "is larger than 64 MiB", "name a file with a list of hosts")
    return text


def _refused(path: Path, reason: str, hint: str) -> InventoryError:
    return InventoryError(f"{path} {reason}", hint=hint)


def _read_draft(path: Path, text: str) -> InventoryDraft:
    """Detect the format of an inventory and read it; problems are recorded."""
    draft = InventoryDraft(Problems(str(path)))
    top = None
    if _is_yaml(text, path):
        top = parse_document(
            text, draft.problems, what="an inventory", needs=_NEEDS, most_values=_MAX_VALUES
        )
        _raise_if_any(draft.problems)
    for reader in (each for extension in extensions() for each in extension.inventory_readers):
        if load(reader.is_of_format)(top):
            load(reader.read)(draft, path, top)
            return draft
    if top is None:
        raise _refused(path, "is neither YAML nor JSON", _ASK_ANSIBLE.format(quoted(path)))
    if is_of_ansible(top):
        raise _refused(path, "is for Ansible to evaluate", _ASK_ANSIBLE.format(quoted(path)))
    if any(entry.name == META for entry in top.entries or ()):
        read_listing(draft, top)
    else:
        _read_own(draft, top)
    return draft


def _is_yaml(text: str, path: Path) -> bool:
    """Whether a text is YAML or JSON, not INI: by suffix, or else by the first non-empty line."""
    if path.suffix.lower() in {".yaml", ".yml", ".json"}:
        return True
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;")
    return path.suffix.lower() != ".ini" and bool(_YAML_LINE.match(next(lines, "")))
