"""Reader of ``terraform output -json``: hosts located by the JMESPath expressions of a mapping.

Names of outputs are arbitrary, so the mapping is a separate file. Its format is described in
docs/reference/inventory.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import Field

from volbench.errors import did_you_mean
from volbench.model.document.document_model import Document, Text
from volbench.model.document.located_errors import Entry, Node
from volbench.plan.inventory.host_document import HOST_KEYS, HostDefaults
from volbench.plan.inventory.host_drafts import (
    GroupDraft,
    HostDraft,
    InventoryDraft,
    location,
    node_of,
)

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
    outputs = [{key.name for key in entry.value.entries or ()} for entry in top.entries or ()]
    return bool(outputs) and all("value" in keys and keys <= _OUTPUT_KEYS for keys in outputs)


def read_terraform(draft: InventoryDraft, outputs: Mapping[str, Any], mapping: Node) -> None:
    """Read the hosts located in the outputs by a mapping.

    Args:
        draft: of the mapping; problems are located at its expressions.
    """
    nodes = {
        entry.name: entry.value for entry in draft.entries(mapping, "a mapping", _MAPPING_KEYS)
    }
    defaults = draft.defaults(nodes.get("defaults"))
    if defaults:  # validated once, even if there is no host
        draft.host(HostDraft("defaults", nodes["defaults"], {}, defaults))
    if "hosts" not in nodes:
        draft.complain(mapping, "a mapping needs hosts", key="hosts")
        return
    node = nodes["hosts"]
    for source in (node,) if node.items is None else node.items:
        _read_source(draft, outputs, source, defaults)
    if not draft.hosts and not draft.problems.found:
        draft.complain(node, "the outputs hold no host", hint="has the plan been applied?")


def _read_source(
    draft: InventoryDraft, outputs: Mapping[str, Any], node: Node, defaults: Mapping[str, Node]
) -> None:
    wanted = {entry.name: entry for entry in draft.entries(node, "a source of hosts", _SOURCE_KEYS)}
    if draft.problems.found or node.entries is None:
        return
    rows = _elements if "from" in wanted else _columns
    names: dict[str, Node] = {}
    for row in rows(draft, outputs, node, wanted):
        if host := _host(draft, row, wanted, defaults):
            names[host.name] = host.at
            draft.add(host)
    if "group" in wanted:
        entry = wanted["group"]
        group = draft.given(entry.value, "group")
        if group and draft.is_name(entry.value, group, "a group"):
            before = draft.groups[group].hosts if group in draft.groups else {}
            draft.groups[group] = GroupDraft(location(entry), {**before, **names})


@dataclass(frozen=True)
class _Row:
    """Data of one host in the outputs."""

    key: str  # key in a map, or text in a list of texts; empty for neither
    scope: Any  # input of the mapping's expressions
    absent: Mapping[str, tuple[str, str]]  # missing names in the scope, with known reason and hint

    def find(self, draft: InventoryDraft, node: Node, expression: str) -> object:
        """Return the value of an expression; None for null, or after recording a problem."""
        value, absent = _search(draft, node, expression, self.scope)
        if absent is not None:
            name, scope = absent
            reason = f"{self.key or 'this host'} has no {name!r}", _nearby(name, scope)
            message, hint = self.absent.get(name, reason)
            draft.complain(node, message, hint=hint)
        return value


def _nearby(name: str, scope: object) -> str:
    names = list(scope) if isinstance(scope, dict) else []
    return did_you_mean(name, names, f"there is {', '.join(names[:8]) or 'nothing'}")


def _search(
    draft: InventoryDraft, node: Node, expression: str, scope: object
) -> tuple[Any, tuple[str, Any] | None]:
    """Return the value of an expression, and the missing name with its scope."""
    try:
        parsed = jmespath.compile(expression)
        return parsed.search(scope), _absent(parsed.parsed, scope)
    except JMESPathError as error:
        reason = " ".join(str(error).split())[:200]
        draft.complain(node, f"{expression!r} is not a valid JMESPath expression: {reason}")
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
    draft: InventoryDraft, outputs: Mapping[str, Any], _: Node, wanted: Mapping[str, Entry]
) -> Iterator[_Row]:
    """Yield a row for each element found by ``from``; an object may itself be a host."""
    node = wanted["from"].value
    expression = draft.given(node, "from")
    if not expression:
        return
    hosts = _Row("", outputs, _no_output(outputs, expression)).find(draft, node, expression)
    paths = [str(wanted[name].value.raw) for name in ("name", "address") if name in wanted]
    firsts = {match[1] for path in paths if (match := _FIRST_NAME.match(path))}
    if isinstance(hosts, dict) and firsts & set(hosts):
        hosts = [hosts]
    for key, element in _keyed(hosts):
        yield _Row(key, element, {})


def _no_output(outputs: Mapping[str, Any], expression: str) -> dict[str, tuple[str, str]]:
    match = _FIRST_NAME.match(expression)
    name = match[1] if match else ""
    return {name: (f"there is no output called {name!r}", _nearby(name, outputs))}


def _columns(
    draft: InventoryDraft, outputs: Mapping[str, Any], source: Node, wanted: Mapping[str, Entry]
) -> Iterator[_Row]:
    """Yield a row for each element of the output at the start of ``name`` or ``address``.

    A row contains the host's part of every output: of lists by index, of maps by key, and single
    values for all hosts.
    """
    leader = wanted.get("name") or wanted.get("address")
    if leader is None:
        draft.complain(
            source,
            "the location of the hosts is missing",
            hint="write from: OUTPUT, or name: and address: with an output each",
        )
        return
    match = _FIRST_NAME.match(draft.given(leader.value, "an expression"))
    name = match[1] if match else ""
    _Row("", outputs, _no_output(outputs, name)).find(draft, leader.value, f'"{name}"')
    elements = _keyed(outputs.get(name))
    absent = {
        other: (
            f"{other} has {len(value)} elements, and there are {len(elements)} hosts",
            "name outputs that have one element for each host",
        )
        for other, value in outputs.items()
        if isinstance(value, list) and len(value) != len(elements)
    }
    for index, (key, _) in enumerate(elements):
        scope = {
            other: value[index]
            if isinstance(value, list)
            else value.get(key)
            if isinstance(value, dict)
            else value
            for other, value in outputs.items()
            if other not in absent and (not isinstance(value, dict) or key in value)
        }
        yield _Row(key, scope, absent)


def _keyed(value: object) -> list[tuple[str, Any]]:
    """Return the elements of an output: with their keys in a map, or themselves where texts."""
    if isinstance(value, dict):
        return list(value.items())
    elements = value if isinstance(value, list) else [] if value is None else [value]
    return [(element if isinstance(element, str) else "", element) for element in elements]


def _host(
    draft: InventoryDraft, row: _Row, wanted: Mapping[str, Entry], defaults: Mapping[str, Node]
) -> HostDraft | None:
    """Return a host with all values located by the mapping."""
    name = _name(draft, row, wanted)
    values = {
        key: _filled(draft, row, wanted[key].value, name) for key in HOST_KEYS if key in wanted
    }
    fields = {key: node for key, node in values.items() if node is not None}
    at = location(wanted["from"] if "from" in wanted else wanted.get("name") or wanted["address"])
    if "from" in wanted and "address" not in fields and not isinstance(row.scope, dict | list):
        fields["address"] = node_of(row.scope, at)
    return HostDraft(name, at, fields, defaults) if name else None


def _name(draft: InventoryDraft, row: _Row, wanted: Mapping[str, Entry]) -> str:
    """Return the name of a host; empty after recording a problem."""
    if "name" not in wanted:
        if not row.key:
            draft.complain(
                wanted["from" if "from" in wanted else "address"].value,
                "the output is a list, and the names of the hosts are missing",
                hint="write name: with the attribute that holds the name",
            )
        return row.key
    node = wanted["name"].value
    before = len(draft.problems.found)
    if filled := _filled(draft, row, node, ""):
        return draft.given(filled, "a name")
    if len(draft.problems.found) == before:
        draft.complain(node, "the name of a host is null")
    return ""


def _filled(draft: InventoryDraft, row: _Row, node: Node, host: str) -> Node | None:
    """Return a part of a mapping with its expressions evaluated; None for null."""
    at = Node(node.line, node.column, f"{node.key}[{host}]" if host else node.key)
    if node.entries is not None:
        values = [(entry, _filled(draft, row, entry.value, host)) for entry in node.entries]
        entries = tuple(Entry(e.name, e.line, e.column, value) for e, value in values if value)
        return replace(at, entries=entries)
    if node.items is not None:
        items = [_filled(draft, row, item, host) for item in node.items]
        return replace(at, items=tuple(item for item in items if item is not None))
    text = draft.given(node, "an expression")
    holes = _HOLE.findall(text)
    value_of = {hole: row.find(draft, node, hole) for hole in holes or [text] if hole}
    if any(value is None for value in value_of.values()) or not text:
        return None
    if not holes:
        return node_of(value_of[text], at)
    texts = {hole: draft.given(node_of(value, at), hole) for hole, value in value_of.items()}
    return node_of(_HOLE.sub(lambda hole: texts[hole[1]], text), at)
