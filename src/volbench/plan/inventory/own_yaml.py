"""Reader of volbench's own inventory format: defaults, hosts with ranges, groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from volbench.model.document.located_errors import Entry, Node
from volbench.plan.inventory.host_document import HOST_KEYS, OWN_KEYS, HostDefaults, is_null
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet, at, with_text
from volbench.plan.inventory.host_names import ALL, Expansion


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


def read_defaults(reader: HostReader, node: Node) -> dict[str, Node]:
    """Return the default values of all hosts."""
    known = tuple(HostDefaults.model_fields)
    return {
        entry.name: entry.value
        for entry in _known(reader, node, known, "defaults")
        if not _is_empty(reader, entry)
    }


def _is_empty(reader: HostReader, entry: Entry) -> bool:
    if is_null(entry.value):
        reader.complain(entry, f"{entry.name} has no value", hint="write one, or leave it out")
        return True
    return False


def _known(reader: HostReader, node: Node, known: tuple[str, ...], what: str) -> Iterator[Entry]:
    for entry in () if is_null(node) else reader.entries(node, what):
        if entry.name in known:
            yield entry
        else:
            reader.unknown(entry, known, what)


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
    if entry.value.is_scalar and not is_null(entry.value):
        reader.complain(
            entry.value,
            f"a host must be a mapping, this is {entry.value.kind}",
            hint=f"write {{address: {entry.value.raw}}}",
        )
        return
    own = {field.name: field.value for field in _known(reader, entry.value, HOST_KEYS, "a host")}
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
