"""Terraform's outputs and one source of a mapping in, a row for each host out.

With ``from`` a row is an element of that output. Without it, a row is what several outputs hold at
the same place: lists at the same index, maps at the same key, and single values for every host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.fio_option import nearest
from volbench.plan.inventory.draft import HostReader
from volbench.plan.inventory.host_entries import is_null

_HOLE = re.compile(r"\{([^{}]+)\}")

Elements = list[tuple[str | None, Node]]


@dataclass(frozen=True)
class Row:
    """What the outputs tell of one host.

    Attributes:
        key: its key in a map, or its text in a list of texts; "" for neither.
        node: its element.
        find: what stands at a dotted path; None, with a problem noted, for nothing.
    """

    key: str
    node: Node
    find: Callable[[Node, str], Node | None]


def filled(asked: HostReader, row: Row, node: Node) -> Node | None:
    """Return a piece of a mapping with what a row holds in the place of each path.

    Returns:
        None when the outputs hold null there, or a problem was noted.
    """
    if node.entries is not None:
        found = [(entry, filled(asked, row, entry.value)) for entry in node.entries]
        entries = tuple(replace(entry, value=value) for entry, value in found if value is not None)
        return Node(row.node.line, row.node.column, row.node.key, entries=entries)
    if node.items is not None:
        items = tuple(one for item in node.items if (one := filled(asked, row, item)) is not None)
        return Node(row.node.line, row.node.column, row.node.key, items=items)
    path = asked.given(node, "a path into the outputs")
    holes = _HOLE.findall(path)
    if not holes:
        return row.find(node, path) if path else None
    told = {hole: row.find(node, hole) for hole in holes}
    texts = {hole: asked.given(one, hole) for hole, one in told.items() if one is not None}
    if len(texts) < len(told):
        return None
    text = _HOLE.sub(lambda hole: texts[hole[1]], path)
    return Node(row.node.line, row.node.column, row.node.key, raw=text)


def rows_of(
    asked: HostReader,
    outputs: Mapping[str, Node],
    source: Node,
    wanted: Mapping[str, Entry],
) -> Iterator[Row]:
    """Yield a row for each host of one source."""
    if "from" in wanted:
        node = wanted["from"].value
        name = asked.given(node, "from")
        found = _output(asked, outputs, node, name) if name else None
        yield from _of_elements(asked, found, wanted)
        return
    leader = wanted.get("name") or wanted.get("address")
    if leader is None:
        asked.complain(
            source,
            "nothing says where the hosts are",
            hint="write from: OUTPUT, or name: and address: with an output each",
        )
        return
    path = asked.given(leader.value, "a path into the outputs")
    found = _output(asked, outputs, leader.value, path.partition(".")[0]) if path else None
    elements = _elements(found)
    for index, (key, node) in enumerate(elements):
        named = key or (node.raw if isinstance(node.raw, str) else "")
        columns = _Columns(asked, outputs, len(elements), index, named)
        yield Row(named, node, columns.find)


def _output(asked: HostReader, outputs: Mapping[str, Node], node: Node, name: str) -> Node | None:
    """Return an output by name, or None with a problem noted."""
    if name not in outputs:
        near = nearest(name, list(outputs))
        asked.complain(
            node,
            f"there is no output called {name!r}",
            hint=f"did you mean `{near}`?" if near else f"outputs are {', '.join(outputs)}",
        )
    return outputs.get(name)


def _elements(node: Node | None) -> Elements:
    """Return the elements of a list or a map, a single value as the only one."""
    if node is None or is_null(node):
        return []
    if node.items is not None:
        return [(None, item) for item in node.items]
    if node.entries is not None:
        return [(entry.name, entry.value) for entry in node.entries]
    return [(None, node)]


def _of_elements(
    asked: HostReader, node: Node | None, wanted: Mapping[str, Entry]
) -> Iterator[Row]:
    paths = {str(wanted[name].value.raw) for name in ("name", "address") if name in wanted}
    names = {entry.name for entry in node.entries or ()} if node else set()
    alone = bool(node and names & {path.partition(".")[0] for path in paths})
    for key, element in [(None, node)] if node and alone else _elements(node):
        text = element.raw if isinstance(element.raw, str) else ""
        yield Row(key or text, element, _in_element(asked, element))


def _in_element(asked: HostReader, element: Node) -> Callable[[Node, str], Node | None]:
    return lambda place, path: _at(asked, place, element, path.split("."))


@dataclass(frozen=True)
class _Columns:
    """What several outputs hold at one place.

    Attributes:
        asked: reader of the mapping.
        outputs: all of them.
        count: of the hosts; every list must have as many elements.
        index: of this host in lists.
        key: of this host in maps.
    """

    asked: HostReader
    outputs: Mapping[str, Node]
    count: int
    index: int
    key: str

    def find(self, place: Node, path: str) -> Node | None:
        """Return what an output holds of this host, at a path below it."""
        name, *rest = path.split(".")
        output = _output(self.asked, self.outputs, place, name)
        if output is None:
            return None
        if output.items is not None and len(output.items) != self.count:
            self.asked.complain(
                place,
                f"{name} has {len(output.items)} elements, and there are {self.count} hosts",
                hint="name outputs that have one element for each host",
            )
            return None
        if output.is_scalar:
            return _at(self.asked, place, output, rest)
        first = self.key if output.items is None else str(self.index)
        return _at(self.asked, place, output, [first, *rest])


def _at(asked: HostReader, place: Node, node: Node, path: list[str]) -> Node | None:
    """Return what stands at a path below a node; None for null, or with a problem noted."""
    for word in path:
        below = _below(node)
        if word not in below:
            shown = ", ".join(list(below)[:8]) or "nothing"
            asked.complain(
                place,
                f"there is no {word!r} in {node.key.replace('.value', '', 1)}",
                hint=f"there is {shown}",
            )
            return None
        node = below[word]
    return None if is_null(node) else node


def _below(node: Node) -> dict[str, Node]:
    if node.items is not None:
        return {str(number): item for number, item in enumerate(node.items)}
    return {entry.name: entry.value for entry in node.entries or ()}
