"""Ansible's INI in, its groups, hosts and variables out, with their lines and columns.

Values are read as Ansible reads them: as a Python literal where they are one, or else as text.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from dataclasses import dataclass

from volbench.model.document.yaml_nodes import Entry, Node
from volbench.plan.inventory.ansible_hosts import host_names
from volbench.plan.inventory.ansible_tree import UNGROUPED, AnsibleTree
from volbench.plan.inventory.draft import ALL, HostReader

_SECTION = re.compile(r"\[([^:\[\]\s]+)(?::(\w+))?\]\s*(?:[#;].*)?")
_KINDS = ("", "children", "vars")


@dataclass
class _Place:
    """The section that is being read."""

    group: str = UNGROUPED
    kind: str = ""
    is_known: bool = True


def read_ini(reader: HostReader, text: str) -> AnsibleTree:
    """Return what an inventory in Ansible's INI says."""
    tree = AnsibleTree()
    place = _Place()
    begun: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if not words or words[0] in "#;":
            continue
        node = Node(number, len(line) - len(line.lstrip()) + 1, "", raw=words)
        if words.startswith("["):
            place = _section(reader, tree, node, begun)
        elif place.is_known:
            _LINES[place.kind](reader, tree, place.group, node)
    for name, group in tree.groups.items():
        if name not in begun and not group.hosts:
            reader.complain(
                group.place,
                f"there is no group called {name!r}",
                hint=f"begin it with the line [{name}]",
            )
    return tree


def _section(reader: HostReader, tree: AnsibleTree, node: Node, begun: set[str]) -> _Place:
    match = _SECTION.fullmatch(str(node.raw))
    kind = "" if match is None else match[2] or ""
    if match is None or kind not in _KINDS:
        reader.complain(
            node,
            f"{node.raw} is no section of an inventory",
            hint="write [group], [group:children] or [group:vars]",
        )
        return _Place(is_known=False)
    if kind != "vars" or match[1] in {ALL, UNGROUPED}:
        begun.add(match[1])
    tree.group(match[1], node)
    return _Place(match[1], kind)


def _host_line(reader: HostReader, tree: AnsibleTree, group: str, node: Node) -> None:
    """Read a host, or a range of hosts, with variables behind it."""
    try:
        first, *words = shlex.split(str(node.raw), comments=True)
    except ValueError:
        reader.complain(node, "a quote without its other half", hint="close it in the same line")
        return
    variables: dict[str, Node] = {}
    for word in words:
        name, sign, value = word.partition("=")
        place = Node(node.line, node.column + max(str(node.raw).find(f"{name}="), 0), name)
        if not sign:
            reader.complain(
                node, f"{word!r} is no variable", hint="write NAME=VALUE, one host a line"
            )
        elif name in variables:
            reader.complain(place, f"{name} stands here twice", hint="keep one of them")
        else:
            variables[name] = literal(value, place)
    found = tree.group(group, node)
    for name, port in host_names(reader, node, first):
        if name in found.hosts:
            line = found.hosts[name].line
            reader.complain(
                node,
                f"{name} stands in this group twice, first in line {line}",
                hint="keep one of them",
            )
        found.hosts.setdefault(name, node)
        with_port = {"ansible_port": port} if port and "ansible_port" not in variables else {}
        tree.add_host(reader, name, node, variables | with_port)


def _child_line(reader: HostReader, tree: AnsibleTree, group: str, node: Node) -> None:
    name = str(node.raw).partition("#")[0].strip()
    tree.group(group, node).children.setdefault(name, node)
    if not name or " " in name or "=" in name:
        reader.complain(node, f"{node.raw!r} is no group", hint="write one name a line")


def _variable_line(reader: HostReader, tree: AnsibleTree, group: str, node: Node) -> None:
    name, sign, value = (part.strip() for part in str(node.raw).partition("="))
    if not sign:
        reader.complain(node, f"{node.raw!r} sets no variable", hint="write NAME=VALUE")
        return
    place = Node(node.line, node.column, name)
    known = tree.group(group, node).variables
    if name in known:
        line = known[name].line
        reader.complain(
            place, f"{name} stands here twice, first in line {line}", hint="keep one of them"
        )
    known.setdefault(name, literal(value, place))


_LINES = {"": _host_line, "children": _child_line, "vars": _variable_line}


def literal(text: str, place: Node) -> Node:
    """Return the value of a variable; numbers stay as they were written."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own, of escapes such as \\d in a text
            value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = text
    if isinstance(value, int | float | complex | bytes) and not isinstance(value, bool):
        value = text.partition("#")[0].strip()
    return _node(value, place)


def _node(value: object, place: Node) -> Node:
    line, column, key = place.line, place.column, place.key
    if isinstance(value, dict):
        entries = tuple(
            Entry(str(name), line, column, _node(below, Node(line, column, f"{key}.{name}")))
            for name, below in value.items()
        )
        return Node(line, column, key, entries=entries)
    if isinstance(value, list | tuple | set):
        return Node(line, column, key, items=tuple(_node(one, place) for one in value))
    raw = value if value is None or isinstance(value, bool) else str(value)
    return Node(line, column, key, raw=raw)
