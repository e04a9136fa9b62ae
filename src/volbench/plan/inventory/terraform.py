"""The output of ``terraform output -json`` and a mapping in, a Sheet out.

The mapping is a file of its own, since outputs have whatever names their authors gave them. See
docs/reference/inventory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.draft import Draft, GroupDraft, HostReader, Sheet, at
from volbench.plan.inventory.host_entries import HOST_KEYS, read_host
from volbench.plan.inventory.own import read_defaults
from volbench.plan.inventory.terraform_rows import Row, filled, rows_of

MAPPING_KEYS = ("defaults", "hosts")
SOURCE_KEYS = ("from", "group", "name", *HOST_KEYS)

_OUTPUT_KEYS = {"value", "type", "sensitive"}


def is_terraform(top: Node) -> bool:
    """Tell whether a document is made of Terraform's outputs."""
    outputs = [{one.name for one in entry.value.entries or ()} for entry in top.entries or ()]
    return bool(outputs) and all("value" in keys and keys <= _OUTPUT_KEYS for keys in outputs)


def read_terraform(reader: HostReader, asked: HostReader, top: Node, mapping: Node) -> Sheet:
    """Return the hosts that a mapping finds in the outputs.

    Args:
        reader: of the outputs.
        asked: reader of the mapping.
        top: the outputs.
        mapping: what stands in the mapping.
    """
    outputs = {
        entry.name: one.value
        for entry in top.entries or ()
        for one in entry.value.entries or ()
        if one.name == "value"
    }
    entries = {entry.name: entry.value for entry in asked.entries(mapping, "a mapping")}
    for entry in mapping.entries or ():
        if entry.name not in MAPPING_KEYS:
            asked.unknown(entry, MAPPING_KEYS, "a mapping")
    defaults = read_defaults(asked, entries["defaults"]) if "defaults" in entries else {}
    if defaults:  # what is wrong in them is wrong in the mapping, not in the outputs
        read_host(asked, Draft("defaults", entries["defaults"], {}, defaults))
    sheet = Sheet()
    if "hosts" not in entries:
        asked.complain(mapping, "a mapping needs hosts", key="hosts")
    else:
        node = entries["hosts"]
        for source in (node,) if node.items is None else node.items:
            _Source(reader, asked, outputs, defaults).read(sheet, source)
    if not sheet.drafts and not (asked.problems.found or reader.problems.found):
        reader.complain(top, "there is no host in it", hint="has it been applied?")
    return sheet


@dataclass(frozen=True)
class _Source:
    """One place in the outputs where hosts come from."""

    reader: HostReader
    asked: HostReader
    outputs: Mapping[str, Node]
    defaults: Mapping[str, Node]

    def read(self, sheet: Sheet, node: Node) -> None:
        """Add the hosts of one source."""
        wanted = {entry.name: entry for entry in self.asked.entries(node, "a source of hosts")}
        for entry in wanted.values():
            if entry.name not in SOURCE_KEYS:
                self.asked.unknown(entry, SOURCE_KEYS, "a source of hosts")
        if self.asked.problems.found or node.entries is None:
            return
        rows = list(rows_of(self.asked, self.outputs, node, wanted))
        drafts = [draft for row in rows if (draft := self._draft(row, wanted)) is not None]
        for draft in drafts:
            sheet.add(self.reader, draft)
        if "group" in wanted:
            self._add_group(sheet, wanted["group"], {draft.name: draft.place for draft in drafts})

    def _draft(self, row: Row, wanted: Mapping[str, Entry]) -> Draft | None:
        """Return a host with all that the mapping asks for."""
        own: dict[str, Node] = {}
        for key in HOST_KEYS:
            found = None if key not in wanted else filled(self.asked, row, wanted[key].value)
            if found is not None:
                own[key] = found
        if "from" in wanted and "address" not in own and row.node.is_scalar:
            own["address"] = row.node
        name = self._name(row, wanted)
        return Draft(name, row.node, own, self.defaults) if name else None

    def _name(self, row: Row, wanted: Mapping[str, Entry]) -> str:
        """Return the name of a host; "" with a problem noted."""
        before = len(self.asked.problems.found)
        if "name" in wanted:
            node = filled(self.asked, row, wanted["name"].value)
            if node is not None:
                return self.reader.given(node, "a name")
            if len(self.asked.problems.found) == before:
                self.reader.complain(row.node, "the name of this host is null")
        elif not row.key:
            self.asked.complain(
                wanted["from" if "from" in wanted else "address"].value,
                "the output is a list, and nothing says what the hosts are called",
                hint="write name: with the attribute that holds the name",
            )
        return row.key if "name" not in wanted else ""

    def _add_group(self, sheet: Sheet, entry: Entry, hosts: Mapping[str, Node]) -> None:
        name = self.asked.given(entry.value, "group")
        if name and self.asked.is_name(entry.value, name, "a group"):
            before = sheet.groups.get(name)
            merged = {**(before.hosts if before else {}), **hosts}
            sheet.groups[name] = GroupDraft(name, at(entry), merged)
