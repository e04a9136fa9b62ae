"""A draft in, a Host out; what can't be is noted with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from volbench.model.campaign.host import LOCAL, Host
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.profile_settings import Limits
from volbench.plan.inventory import checks
from volbench.plan.inventory.draft import Draft, HostReader
from volbench.plan.profile.limits_document import read_role_limits

HOST_KEYS = (
    "address",
    "port",
    "user",
    "key",
    "jump",
    "sudo",
    "volumes",
    "labels",
    "limits",
    "allow_destroy",
    "workdir",
)
"""What can be said of a host, in the order of the documentation."""

MERGED = ("volumes", "labels")
"""Keys of which a host's own entries join the inherited ones; it replaces all others whole."""

_OF_CONNECTIONS = ("port", "user", "key", "jump")


def read_host(reader: HostReader, draft: Draft) -> Host:
    """Return a host; its `jump` is still as it was written."""
    fields = _fields(reader, draft)
    values = {name: read(reader, fields[name]) for name, read in _READERS.items() if name in fields}
    for name in MERGED:
        values[name] = _merged(reader, draft, name)
    values.setdefault("address", "" if draft.name == LOCAL else draft.name)
    if draft.name == LOCAL and values["address"]:
        reader.complain(
            fields["address"],
            "local is the controller's own machine",
            hint="give a machine with an address another name",
        )
    if not values["address"]:
        _check_local(reader, draft)
        values = {name: value for name, value in values.items() if name not in _OF_CONNECTIONS}
    return Host.model_validate({"name": draft.name, **values})


def _fields(reader: HostReader, draft: Draft) -> dict[str, Node]:
    """Return what holds for a host; null takes an inherited value away."""
    found = {name: node for name, node in draft.inherited.items() if name not in MERGED}
    for name, node in draft.own.items():
        if name in MERGED:
            continue
        if is_null(node):
            if found.pop(name, None) is None:
                reader.complain(node, f"{name} has no value", hint="write one, or leave it out")
        else:
            found[name] = node
    return found


def is_null(node: Node) -> bool:
    """Tell whether nothing was written."""
    return node.is_scalar and node.raw is None


def _check_local(reader: HostReader, draft: Draft) -> None:
    for name in _OF_CONNECTIONS:
        if name in draft.own and not is_null(draft.own[name]):
            reader.complain(
                draft.own[name],
                f"nobody connects to the controller's own machine, so {name} means nothing",
                hint="leave it out",
            )


def _merged(reader: HostReader, draft: Draft, what: str) -> dict[str, str]:
    """Return volumes or labels, a host's own entries over the inherited ones."""
    check_name, check_value = _ENTRIES[what]
    found: dict[str, str] = {}
    for node in (draft.inherited.get(what), draft.own.get(what)):
        if node is None:
            continue
        if is_null(node):
            if not found:
                reader.complain(node, f"{what} has no value", hint="write one, or leave it out")
            found.clear()
            continue
        for entry in reader.entries(node, what):
            name = reader.value(_name_node(entry.name, entry.value), what, check_name, "")
            if is_null(entry.value) and name not in found:
                reader.complain(
                    entry, f"{entry.name} has no value", hint="write one, or leave it out"
                )
            elif is_null(entry.value):
                del found[name]
            elif name:
                found[name] = reader.value(entry.value, entry.name, check_value, "")
    return found


def _name_node(name: str, value: Node) -> Node:
    return Node(value.line, value.column, value.key, raw=name)


_ENTRIES: Mapping[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "volumes": (checks.role, checks.target),
    "labels": (checks.label_name, checks.label),
}


def _address(reader: HostReader, node: Node) -> str:
    return reader.value(node, "address", checks.address, str(node.raw))


def _jump(reader: HostReader, node: Node) -> tuple[str, ...]:
    """Return the hops; ``none`` and an empty list say that there are none."""
    if node.items is None:
        text = reader.given(node, "jump")
        parts = [] if text.lower() in {"", "none"} else text.split(",")
        nodes = [Node(node.line, node.column, node.key, raw=part.strip()) for part in parts]
    else:
        nodes = list(node.items)
    hops = (reader.value(one, "jump", checks.hop, None) for one in nodes)
    return tuple(checks.hop_text(*hop) for hop in hops if hop is not None)


def _limits(reader: HostReader, node: Node) -> dict[str, Limits]:
    def check_role(entry: Entry) -> None:
        reader.value(_name_node(entry.name, entry.value), "limits", checks.role, "")

    return read_role_limits(reader.problems, node, check_role=check_role)


def _allow_destroy(reader: HostReader, node: Node) -> tuple[str, ...]:
    nodes = (node,) if node.items is None else node.items
    found = (reader.value(one, "allow_destroy", checks.leave, "") for one in nodes)
    return tuple(dict.fromkeys(text for text in found if text))


_READERS: dict[str, Callable[[HostReader, Node], object]] = {
    "address": _address,
    "port": lambda reader, node: reader.value(node, "port", checks.port, None),
    "user": lambda reader, node: reader.value(node, "user", checks.user, None),
    "key": lambda reader, node: reader.value(node, "key", checks.key, ""),
    "jump": _jump,
    "sudo": lambda reader, node: reader.value(node, "sudo", checks.yes_or_no, False),
    "limits": _limits,
    "allow_destroy": _allow_destroy,
    "workdir": lambda reader, node: reader.value(node, "workdir", checks.workdir, ""),
}
