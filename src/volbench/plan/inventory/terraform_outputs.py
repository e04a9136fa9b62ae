"""Reader of ``terraform output -json``: hosts located by the JMESPath expressions of a mapping.

Names of outputs are arbitrary, so the mapping is a separate file. Its format is described in
docs/reference/inventory.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field

from volbench.errors import did_you_mean
from volbench.model.document.document_model import Document, Text
from volbench.model.document.located_errors import Entry, Node
from volbench.plan.inventory.host_document import HOST_KEYS, HostDefaults, read_defaults, read_host
from volbench.plan.inventory.host_drafts import Draft, GroupDraft, HostReader, Sheet, at, node_of

_OUTPUT_KEYS = {"value", "type", "sensitive"}
_HOLE = re.compile(r"\{([^{}]+)\}")
_FIRST_NAME = re.compile(r'[{\s"]*([\w-]+)')


class HostSource(Document):
    """Location of hosts in the outputs; each key of a host is an expression for its value."""

    output: Text = Field(
        default="",
        alias="from",
        description="The output, or an expression for it: a map or a list of objects, a map of "
        "names to addresses, a list of addresses, or one object.",
    )
    name: Text = Field(
        default="", description="Expression for the name; without it the key in the map."
    )
    group: Text = Field(default="", description="Name of a group for all hosts of this source.")


class TerraformMapping(Document):
    """Mapping of Terraform's outputs to hosts."""

    defaults: HostDefaults = Field(
        default=HostDefaults(), description="Fixed values, as in volbench's own YAML."
    )
    hosts: HostSource | tuple[HostSource, ...] = Field(
        description="One source of hosts, or a list of sources."
    )


_MAPPING_KEYS = tuple(TerraformMapping.model_fields)
_SOURCE_KEYS = (*(f.alias or name for name, f in HostSource.model_fields.items()), *HOST_KEYS)


def is_terraform(top: Node) -> bool:
    """Whether a document consists of Terraform's outputs."""
    outputs = [{part.name for part in entry.value.entries or ()} for entry in top.entries or ()]
    return bool(outputs) and all("value" in keys and keys <= _OUTPUT_KEYS for keys in outputs)


def read_terraform(reader: HostReader, outputs: Mapping[str, Any], mapping: Node) -> Sheet:
    """Return the hosts located in the outputs by a mapping.

    Args:
        reader: reader of the mapping; problems are located at its expressions.
    """
    entries = {entry.name: entry.value for entry in reader.entries(mapping, "a mapping")}
    for entry in mapping.entries or ():
        if entry.name not in _MAPPING_KEYS:
            reader.unknown(entry, _MAPPING_KEYS, "a mapping")
    defaults = read_defaults(reader, entries["defaults"]) if "defaults" in entries else {}
    if defaults:  # validated once, even if there is no host
        read_host(reader, Draft("defaults", entries["defaults"], {}, defaults))
    sheet = Sheet()
    if "hosts" not in entries:
        reader.complain(mapping, "a mapping needs hosts", key="hosts")
        return sheet
    node = entries["hosts"]
    for source in (node,) if node.items is None else node.items:
        _read_source(reader, sheet, outputs, source, defaults)
    if not sheet.drafts and not reader.problems.found:
        reader.complain(node, "the outputs hold no host", hint="has the plan been applied?")
    return sheet


def _read_source(
    reader: HostReader,
    sheet: Sheet,
    outputs: Mapping[str, Any],
    node: Node,
    defaults: Mapping[str, Node],
) -> None:
    wanted = {entry.name: entry for entry in reader.entries(node, "a source of hosts")}
    for entry in wanted.values():
        if entry.name not in _SOURCE_KEYS:
            reader.unknown(entry, _SOURCE_KEYS, "a source of hosts")
    if reader.problems.found or node.entries is None:
        return
    rows = _elements(reader, outputs, wanted) if "from" in wanted else None
    names: dict[str, Node] = {}
    for row in _columns(reader, outputs, node, wanted) if rows is None else rows:
        draft = _draft(reader, row, wanted, defaults)
        if draft is not None:
            names[draft.name] = draft.place
            sheet.add(reader, draft)
    if "group" in wanted:
        _add_group(reader, sheet, wanted["group"], names)


@dataclass(frozen=True)
class _Row:
    """Data of one host in the outputs."""

    key: str  # key in a map, or text in a list of texts; empty for neither
    scope: Any  # input of the mapping's expressions
    absent: Mapping[str, tuple[str, str]]  # missing names in the scope, with known reason and hint

    def find(self, reader: HostReader, node: Node, expression: str) -> object:
        """Return the value of an expression; None for null, or after recording a problem."""
        found, absent = _search(reader, node, expression, self.scope)
        if absent is not None:
            name, scope = absent
            here = f"{self.key or 'this host'} has no {name!r}"
            message, hint = self.absent.get(name, (here, _nearby(name, scope)))
            reader.complain(node, message, hint=hint)
        return found


def _nearby(name: str, scope: object) -> str:
    names = list(scope) if isinstance(scope, dict) else []
    return did_you_mean(name, names, f"there is {', '.join(names[:8]) or 'nothing'}")


def _search(
    reader: HostReader, node: Node, expression: str, scope: object
) -> tuple[Any, tuple[str, Any] | None]:
    """Return the value of an expression, and the missing name with its scope."""
    try:
        parsed = jmespath.compile(expression)
        return parsed.search(scope), _absent(parsed.parsed, scope)
    except JMESPathError as error:
        words = " ".join(str(error).split())[:200]
        reader.complain(node, f"{expression!r} is not a valid JMESPath expression: {words}")
        return None, None


def _absent(tree: Mapping[str, Any], scope: Any) -> tuple[str, Any] | None:  # noqa: ANN401 - JSON
    """Return the first missing name of a plain path, and its scope; JMESPath returns null."""
    if tree["type"] == "field":
        is_there = isinstance(scope, dict) and tree["value"] in scope
        return None if is_there else (tree["value"], scope)
    if tree["type"] in {"subexpression", "index_expression"}:
        for child in tree["children"]:
            if scope is None or (absent := _absent(child, scope)) is not None:
                return None if scope is None else absent
            scope = jmespath.parser.ParsedResult("", child).search(scope)
    return None


def _elements(
    reader: HostReader, outputs: Mapping[str, Any], wanted: Mapping[str, Entry]
) -> Iterator[_Row]:
    """Yield a row for each element found by ``from``; an object may itself be a host."""
    node = wanted["from"].value
    expression = reader.given(node, "from")
    if not expression:
        return
    found = _Row("", outputs, _no_output(outputs, expression)).find(reader, node, expression)
    paths = [str(wanted[name].value.raw) for name in ("name", "address") if name in wanted]
    firsts = {match[1] for path in paths if (match := _FIRST_NAME.match(path))}
    if isinstance(found, dict) and not firsts & set(found):
        for key, element in found.items():
            yield _Row(key, element, {})
        return
    for element in found if isinstance(found, list) else [] if found is None else [found]:
        yield _Row(element if isinstance(element, str) else "", element, {})


def _no_output(outputs: Mapping[str, Any], expression: str) -> dict[str, tuple[str, str]]:
    match = _FIRST_NAME.match(expression)
    name = match[1] if match else ""
    return {name: (f"there is no output called {name!r}", _nearby(name, outputs))}


def _columns(
    reader: HostReader, outputs: Mapping[str, Any], source: Node, wanted: Mapping[str, Entry]
) -> Iterator[_Row]:
    """Yield a row for each element of the output at the start of ``name`` or ``address``.

    A row contains the host's part of every output: of lists by index, of maps by key, and single
    values for all hosts.
    """
    leader = wanted.get("name") or wanted.get("address")
    if leader is None:
        reader.complain(
            source,
            "the location of the hosts is missing",
            hint="write from: OUTPUT, or name: and address: with an output each",
        )
        return
    match = _FIRST_NAME.match(reader.given(leader.value, "an expression"))
    name = match[1] if match else ""
    _Row("", outputs, _no_output(outputs, name)).find(reader, leader.value, f'"{name}"')
    found = outputs.get(name)
    elements = list(found.items()) if isinstance(found, dict) else _listed(found)
    absent = {
        other: (
            f"{other} has {len(value)} elements, and there are {len(elements)} hosts",
            "name outputs that have one element for each host",
        )
        for other, value in outputs.items()
        if isinstance(value, list) and len(value) != len(elements)
    }
    for index, (key, element) in enumerate(elements):
        named = key or (element if isinstance(element, str) else "")
        scope = {
            other: value[index]
            if isinstance(value, list)
            else value.get(named)
            if isinstance(value, dict)
            else value
            for other, value in outputs.items()
            if other not in absent and (not isinstance(value, dict) or named in value)
        }
        yield _Row(named, scope, absent)


def _listed(found: object) -> list[tuple[str, Any]]:
    values = found if isinstance(found, list) else [] if found is None else [found]
    return [("", value) for value in values]


def _draft(
    reader: HostReader, row: _Row, wanted: Mapping[str, Entry], defaults: Mapping[str, Node]
) -> Draft | None:
    """Return a host with all values located by the mapping."""
    name = _name(reader, row, wanted)
    own: dict[str, Node] = {}
    for key in HOST_KEYS:
        found = _filled(reader, row, wanted[key].value, name) if key in wanted else None
        if found is not None:
            own[key] = found
    place = wanted["from"] if "from" in wanted else wanted.get("name") or wanted["address"]
    if "from" in wanted and "address" not in own and not isinstance(row.scope, dict | list):
        own["address"] = node_of(row.scope, at(place))
    return Draft(name, at(place), own, defaults) if name else None


def _name(reader: HostReader, row: _Row, wanted: Mapping[str, Entry]) -> str:
    """Return the name of a host; empty after recording a problem."""
    if "name" not in wanted:
        if not row.key:
            reader.complain(
                wanted["from" if "from" in wanted else "address"].value,
                "the output is a list, and the names of the hosts are missing",
                hint="write name: with the attribute that holds the name",
            )
        return row.key
    node = wanted["name"].value
    before = len(reader.problems.found)
    found = _filled(reader, row, node, "")
    if found is not None:
        return reader.given(found, "a name")
    if len(reader.problems.found) == before:
        reader.complain(node, "the name of a host is null")
    return ""


def _filled(reader: HostReader, row: _Row, node: Node, host: str) -> Node | None:
    """Return a part of a mapping with its expressions evaluated; None for null."""
    place = Node(node.line, node.column, f"{node.key}[{host}]" if host else node.key)
    if node.entries is not None:
        found = [(entry, _filled(reader, row, entry.value, host)) for entry in node.entries]
        entries = [Entry(e.name, e.line, e.column, value) for e, value in found if value]
        return Node(place.line, place.column, place.key, entries=tuple(entries))
    if node.items is not None:
        items = [_filled(reader, row, item, host) for item in node.items]
        kept = tuple(item for item in items if item is not None)
        return Node(place.line, place.column, place.key, items=kept)
    text = reader.given(node, "an expression")
    holes = _HOLE.findall(text)
    values = {hole: row.find(reader, node, hole) for hole in holes or [text] if hole}
    if any(value is None for value in values.values()) or not text:
        return None
    if not holes:
        return node_of(values[text], place)
    texts = {hole: reader.given(node_of(value, place), hole) for hole, value in values.items()}
    return node_of(_HOLE.sub(lambda hole: texts[hole[1]], text), place)


def _add_group(reader: HostReader, sheet: Sheet, entry: Entry, hosts: Mapping[str, Node]) -> None:
    name = reader.given(entry.value, "group")
    if name and reader.is_name(entry.value, name, "a group"):
        before = sheet.groups.get(name)
        merged = {**(before.hosts if before else {}), **hosts}
        sheet.groups[name] = GroupDraft(name, at(entry), merged)
