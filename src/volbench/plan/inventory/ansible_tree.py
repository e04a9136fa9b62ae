"""Groups, hosts and variables of an Ansible inventory in, a Sheet out.

Which variable holds is found as Ansible does ("How variables are merged", Ansible's inventory
guide): groups nearer to the host go before those farther away, a greater
``ansible_group_priority`` before a smaller one, later names before earlier ones, and the host's own
variables before all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from volbench.model.document.yaml_nodes import Node
from volbench.plan.inventory.ansible_vars import Variables, fields_of
from volbench.plan.inventory.draft import ALL, Draft, GroupDraft, HostReader, Sheet

UNGROUPED = "ungrouped"

_PRIORITY = "ansible_group_priority"
_BESIDE = ("group_vars", "host_vars")


@dataclass
class AnsibleGroup:
    """A group of Ansible's.

    Attributes:
        place: where it was first named.
        hosts: names with their places.
        children: names of groups with their places.
        variables: of all hosts in it.
    """

    place: Node
    hosts: dict[str, Node] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)
    variables: dict[str, Node] = field(default_factory=dict)


@dataclass
class AnsibleTree:
    """Everything an Ansible inventory says.

    Attributes:
        groups: in the order they were named.
        hosts: name to place, in the order they were named.
        host_variables: host to its own variables.
        is_whole: whether the variables of ``group_vars`` and ``host_vars`` are in it already.
    """

    groups: dict[str, AnsibleGroup] = field(default_factory=dict)
    hosts: dict[str, Node] = field(default_factory=dict)
    host_variables: dict[str, dict[str, Node]] = field(default_factory=dict)
    is_whole: bool = False

    def group(self, name: str, place: Node) -> AnsibleGroup:
        """Return a group, made when it is new."""
        return self.groups.setdefault(name, AnsibleGroup(place))

    def add_host(
        self, reader: HostReader, name: str, place: Node, variables: Mapping[str, Node]
    ) -> None:
        """Take a host in, again perhaps; one variable with two values is noted as a problem."""
        self.hosts.setdefault(name, place)
        own = self.host_variables.setdefault(name, {})
        for key, node in variables.items():
            if key in own and _plain(own[key]) != _plain(node):
                reader.complain(
                    node,
                    f"{key} of {name} has another value in line {own[key].line}",
                    hint="keep one of them",
                )
            own.setdefault(key, node)


def _plain(node: Node) -> object:
    """Return what a node says, without its place."""
    if node.entries is not None:
        return {entry.name: _plain(entry.value) for entry in node.entries}
    return node.raw if node.items is None else [_plain(item) for item in node.items]


def sheet_of(reader: HostReader, tree: AnsibleTree, path: Path) -> Sheet:
    """Return the hosts and groups of an Ansible inventory, its variables in our own words."""
    sheet = Sheet()
    unused: set[str] = set()
    order = _by_weight(reader, tree)
    above = _groups_above(tree)
    for name, place in tree.hosts.items():
        inherited: Variables = {}
        for group in order:
            if group in above.get(name, ()):
                inherited |= tree.groups[group].variables
        fields = fields_of(reader, tree.host_variables.get(name, {}), inherited)
        unused |= fields.unused
        sheet.add(reader, Draft(name, place, fields.own, fields.inherited))
    if not tree.hosts and not reader.problems.found:
        reader.problems.add("an inventory needs hosts", line=1, column=1)
    for name, one in tree.groups.items():
        if name not in {ALL, UNGROUPED} or one.hosts:
            reader.is_name(one.place, name, "a group")
            sheet.groups[name] = GroupDraft(name, one.place, one.hosts, one.children)
    if unused:
        reader.notes.append(f"not used by volbench: {', '.join(sorted(unused))}")
    _tell_beside(reader, tree, path)
    return sheet


def _tell_beside(reader: HostReader, tree: AnsibleTree, path: Path) -> None:
    for name in () if tree.is_whole else _BESIDE:
        if (path.parent / name).is_dir():
            reader.notes.append(
                f"{name} beside it is not read; to have it, use the output of "
                f"ansible-inventory -i {path} --list"
            )


def _by_weight(reader: HostReader, tree: AnsibleTree) -> list[str]:
    """Return the groups, those whose variables go before all others last."""
    depths = dict.fromkeys(tree.groups, 1) | {ALL: 0}
    for _ in tree.groups:  # more rounds than any way down has steps, even where it is a circle
        for name, group in tree.groups.items():
            for child in group.children:
                depths[child] = max(depths.get(child, 1), depths[name] + 1)

    def weight(name: str) -> tuple[int, int, str]:
        node = tree.groups[name].variables.get(_PRIORITY)
        priority = 1 if node is None else reader.value(node, _PRIORITY, int, 1)
        return depths[name], priority, name

    return sorted(tree.groups, key=weight)


def _groups_above(tree: AnsibleTree) -> dict[str, set[str]]:
    """Return host to every group it is in, by way of other groups too."""
    parents: dict[str, set[str]] = {}
    for name, group in tree.groups.items():
        for child in group.children:
            parents.setdefault(child, set()).add(name)
    above: dict[str, set[str]] = {host: {ALL} & set(tree.groups) for host in tree.hosts}
    for name, group in tree.groups.items():
        for host in group.hosts:
            above.setdefault(host, set()).update(_upwards(name, parents))
    return above


def _upwards(name: str, parents: Mapping[str, set[str]]) -> Iterator[str]:
    seen, waiting = {name}, [name]
    while waiting:
        new = parents.get(waiting.pop(), set()) - seen
        seen |= new
        waiting.extend(new)
    yield from seen
