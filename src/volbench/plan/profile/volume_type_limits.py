"""Declared limits, written out or by the type of the volume: YAML or text in, Limits out.

``azure/P15`` names a type; ``aws/gp3 size=500g iops=6000`` says which volume of it, and so does
``{type: aws/gp3, size: 500g, iops: 6000}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.catalogue.volume_type import Wanted
from volbench.model.document.yaml_nodes import Entry, Node
from volbench.model.profile.profile_settings import Limits
from volbench.plan.profile.declared_limits import LIMIT_KEYS, limit_problem
from volbench.plan.profile.document_fields import FieldReader
from volbench.plan.volume_types import catalogue, evaluate, find_type
from volbench.units import parse_size

TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9._-]*")
"""A type with its provider; a rate such as 125MB/s begins with a digit."""


def _size(text: str) -> float:
    size = parse_size(text)
    if size <= 0:
        raise InputError(f"{text} is not above 0", hint="write it like 100g")
    return float(size)


WANTED_KEYS: Mapping[str, Callable[[str], float]] = MappingProxyType(
    {"size": _size, "iops": LIMIT_KEYS["iops"].read, "bandwidth": LIMIT_KEYS["bandwidth"].read}
)
"""What may be said of a volume beside its type."""

OTHER_KEYS = ("type", "size", "name")
"""Keys under ``limits`` beside `LIMIT_KEYS`."""

_HINT = 'write it like "aws/gp3 size=500g iops=6000 bandwidth=250MiB/s"'


def read_role_limits(
    reader: FieldReader, node: Node, *, check_role: Callable[[Entry], object] | None = None
) -> dict[str, Limits]:
    """Return limits by role; ``*`` stands for all roles where none is named.

    Args:
        reader: notes what is wrong.
        node: what stands under ``limits``.
        check_role: is called with the entry of each role that is named, but for ``*``.
    """
    if not names_roles(node):
        return {"*": read_limits(reader, node)}
    entries = reader.entries(node, "limits")
    for entry in entries:
        if check_role is not None and entry.name != "*":
            check_role(entry)
    return {entry.name: read_limits(reader, entry.value) for entry in entries}


def names_roles(node: Node) -> bool:
    """Tell whether ``limits`` are by role: a key's value is a mapping, or a volume type."""
    return any(
        entry.value.entries is not None
        or (entry.name not in OTHER_KEYS and is_type(str(entry.value.raw)))
        for entry in node.entries or ()
    )


def is_type(text: str) -> bool:
    """Tell whether a text begins with the name of a volume type."""
    return TYPE_NAME.match(text) is not None


def read_limits(reader: FieldReader, node: Node) -> Limits:
    """Return declared limits: of a type, or one by one."""
    if node.is_scalar:
        return reader.value(node, "limits", limits_from_text, Limits())
    entries = {entry.name: entry for entry in reader.entries(node, "limits")}
    if "type" in entries:
        return _of_type(reader, node, entries)
    values: dict[str, object] = {}
    for name, entry in entries.items():
        if name == "name":
            values["name"] = reader.given(entry.value, "name")
        elif name not in LIMIT_KEYS:
            reader.unknown(entry, (*LIMIT_KEYS, *OTHER_KEYS), "limits")
        elif number := reader.value(entry.value, name, LIMIT_KEYS[name].read, 0.0):
            values[LIMIT_KEYS[name].attribute] = number
    limits = Limits.model_validate(values)
    if problem := limit_problem(limits):
        reader.complain(node, problem[1], key=f"{node.key}.{problem[0]}")
    return limits


def _of_type(reader: FieldReader, node: Node, entries: Mapping[str, Entry]) -> Limits:
    """Return the limits of ``{type: aws/gp3, size: 500g, ...}``."""
    values: dict[str, float] = {}
    for name, entry in entries.items():
        if name in WANTED_KEYS:
            values[name] = reader.value(entry.value, name, WANTED_KEYS[name], 0.0)
        elif name in LIMIT_KEYS:
            reader.complain(entry, f"{name} follows from the type", hint="leave one of the two out")
        elif name != "type":
            reader.unknown(entry, ("type", *WANTED_KEYS), "limits with a type")
    if any(not number for number in values.values()):
        return Limits()
    place = entries["type"].value
    text = reader.given(place, "type")
    try:
        return limits_of_type(text, values) if text else Limits()
    except InputError as error:
        reader.complain(node if values else place, error.message, hint=error.hint)
        return Limits()


def limits_from_text(text: str) -> Limits:
    """Return the limits that ``azure/P15`` or ``aws/gp3 size=500g iops=6000`` names.

    Raises:
        InputError: it can't be read, there is no such type, or no such volume of it.
    """
    name, *settings = text.split() or [""]
    if not TYPE_NAME.fullmatch(name):
        raise InputError(f"{text!r} is no volume type", hint=_HINT)
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in WANTED_KEYS:
            raise InputError(f"{setting!r} says nothing of a volume", hint=_HINT)
        values[key] = WANTED_KEYS[key](value)
    return limits_of_type(name, values)


def limits_of_type(name: str, values: Mapping[str, float]) -> Limits:
    """Return limits of a type; those that depend on the volume itself wait for it.

    Args:
        name: of the type.
        values: some of `WANTED_KEYS`.

    Raises:
        InputError: there is no such type, or no such volume of it.
    """
    kind = find_type(name, catalogue())
    wanted = Wanted(
        type=kind,
        size_bytes=int(values["size"]) if "size" in values else None,
        iops=values.get("iops"),
        bandwidth_bytes_per_s=values.get("bandwidth"),
    )
    waits = kind.needs_size and wanted.size_bytes is None
    if not waits:
        limits = evaluate(wanted)
        if kind.is_one_for_all:
            return limits
    return Limits(name=kind.name, wanted=wanted)


def with_limit(limits: Limits, name: str, number: float | None) -> Limits:
    """Return limits with one changed: of a type that waits for its size, what is bought of it.

    Raises:
        InputError: it follows from a type.
    """
    if limits.wanted is None:
        return limits.model_copy(update={LIMIT_KEYS[name].attribute: number})
    if name not in WANTED_KEYS:
        raise InputError(
            f"{name} follows from the type {limits.name}", hint="set all limits, or none"
        )
    bought = wanted_keys(limits.wanted)
    bought.pop(name, None)
    return limits_of_type(limits.name, bought if number is None else {**bought, name: number})


def wanted_keys(wanted: Wanted) -> dict[str, float]:
    """Return what is said of a volume beside its type, by the names of `WANTED_KEYS`."""
    told = {
        "size": wanted.size_bytes,
        "iops": wanted.iops,
        "bandwidth": wanted.bandwidth_bytes_per_s,
    }
    return {name: float(value) for name, value in told.items() if value is not None}


def with_known_limits(run: Run) -> Run:
    """Return a Run whose limits are worked out, as far as the size of its volume is known.

    Raises:
        InputError: there is no volume of that type and size.
    """
    wanted = run.limits.wanted
    if wanted is None:
        return run
    if wanted.size_bytes is None and run.volume.pin is not None:
        wanted = wanted.model_copy(update={"size_bytes": run.volume.pin.size_bytes})
    if wanted.type.needs_size and wanted.size_bytes is None:
        return run
    return run.model_copy(update={"limits": evaluate(wanted, writes=_writes(run))})


def check_known_limits(runs: tuple[Run, ...]) -> None:
    """Refuse limits that nobody can work out.

    Raises:
        InputError: the type of a volume needs a size, and the volume tells none.
    """
    for run in runs:
        if run.limits.wanted is not None:
            raise InputError(
                f"the limits of {run.limits.name} depend on the size, and {run.volume.target} "
                "is no device that would tell it",
                hint=f'write it: --set limits.{run.volume.role}="{run.limits.name} size=100g"',
                context={"role": run.volume.role, "type": run.limits.name},
            )


def _writes(run: Run) -> bool | None:
    """Tell whether a Run only writes (True), only reads (False), or may do both (None)."""
    accesses = {
        run.effective(section).get("rw", "").partition(":")[0].removeprefix("rand")
        for section in run.sections
    }
    return {frozenset({"write"}): True, frozenset({"read"}): False}.get(frozenset(accesses))
