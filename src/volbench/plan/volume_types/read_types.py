"""The text of a file of volume types in, the types out, or every problem with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from volbench.errors import InputError, Problems
from volbench.model.catalogue.volume_type import Provision, Rule, Rules, TypeSource, VolumeType
from volbench.model.document.yaml_nodes import Entry, Node, parse_document
from volbench.plan.profile.declared_limits import LIMIT_KEYS
from volbench.plan.profile.document_fields import FieldReader
from volbench.units import parse_duration, parse_size

FILE_KEYS = ("provider", "checked", "source", "types")
TYPE_KEYS = (
    "title",
    "source",
    "checked",
    "note",
    "size",
    "sizes",
    "tiers",
    *LIMIT_KEYS,
    "burst_duration",
    "writes",
)
RULE_KEYS = (
    "base",
    "per_gib",
    "per_tib",
    "per_iops",
    "per_mib_s",
    "least",
    "most",
    "above",
    "below",
)
PROVISION_KEYS = ("included", "least", "most")
SOURCE_KEYS = ("title", "url")
WRITE_KEYS = ("iops", "bandwidth")

NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_GIB_PER_TIB = 1024
_ATTRIBUTES = {
    "iops": "iops",
    "bandwidth": "bandwidth",
    "burst_iops": "burst_iops",
    "burst_ios": "burst_ios",
    "burst_bandwidth": "burst_bandwidth",
    "burst_bytes": "burst_bytes",
}


def parse_types(text: str, *, path: str) -> dict[str, VolumeType]:
    """Read the types of one file.

    Args:
        text: YAML 1.2.
        path: for messages.

    Returns:
        Name with its provider, such as ``aws/gp2``, to the type, in file order.

    Raises:
        InputError: everything that is wrong in it, in file order.
    """
    reader = FieldReader(Problems(path))
    top = parse_document(
        text, reader.problems, what="a file of volume types", needs="a provider and types"
    )
    found = {} if top is None else _types(reader, top)
    raise_problems(reader.problems)
    return found


def raise_problems(problems: Problems) -> None:
    """Raise what was found in a file.

    Raises:
        InputError: at least one problem was noted.
    """
    if problems.found:
        raise InputError(
            "\n".join(str(problem) for problem in problems.in_order()),
            context={"path": problems.path},
        )


def _types(reader: FieldReader, top: Node) -> dict[str, VolumeType]:
    entries = known_entries(reader, top, FILE_KEYS, "a file of volume types")
    for name in ("provider", "types"):
        if name not in entries:
            reader.complain(top, f"{name} is missing", key=name)
    provider = _provider(reader, entries["provider"].value) if "provider" in entries else ""
    found: dict[str, VolumeType] = {}
    content = reader.entries(entries["types"].value, "types") if "types" in entries else ()
    for entry in content:
        if not NAME.fullmatch(entry.name):
            reader.complain(
                entry, f"{entry.name!r} can't be the name of a type", hint="such as gp3 or P15"
            )
            continue
        found[entry.name] = _TypeReader(reader, entries, found).read(entry, provider)
    return {kind.name: kind for kind in found.values()}


def _provider(reader: FieldReader, node: Node) -> str:
    text = reader.given(node, "provider")
    if text and not NAME.fullmatch(text):
        reader.complain(node, f"{text!r} can't be a provider's name", hint="such as azure")
    return text


def known_entries(
    reader: FieldReader, node: Node, known: tuple[str, ...], what: str
) -> dict[str, Entry]:
    """Return the entries of a mapping by name; unknown ones become problems."""
    entries = {entry.name: entry for entry in reader.entries(node, what)}
    for entry in entries.values():
        if entry.name not in known:
            reader.unknown(entry, known, what)
    return entries


class _TypeReader:
    """Reads one type; what the file says of all types stands behind what it says itself."""

    def __init__(
        self, reader: FieldReader, top: Mapping[str, Entry], before: Mapping[str, VolumeType]
    ) -> None:
        self._reader = reader
        self._top = top
        self._before = before

    def read(self, entry: Entry, provider: str) -> VolumeType:
        own = known_entries(self._reader, entry.value, TYPE_KEYS, "a volume type")
        nodes = {name: one.value for name, one in own.items()}
        common = {name: one.value for name, one in self._top.items()}
        values: dict[str, object] = {
            "name": f"{provider}/{entry.name}",
            "title": self._text(nodes, "title") or entry.name,
            "note": self._text(nodes, "note"),
            "source": self._source(nodes.get("source") or common.get("source"), entry),
            "checked": self._checked(nodes.get("checked") or common.get("checked"), entry),
        }
        values |= self._sizes(nodes, entry)
        values |= self._limits(nodes)
        if "tiers" in nodes:
            values["tiers"] = self._tiers(nodes["tiers"])
        kind = VolumeType.model_validate(values)
        self._check(kind, entry)
        return kind

    def _text(self, nodes: Mapping[str, Node], name: str) -> str:
        return self._reader.given(nodes[name], name) if name in nodes else ""

    def _source(self, node: Node | None, entry: Entry) -> TypeSource:
        if node is None:
            self._reader.complain(entry, "nobody can check it without a source", hint=_SOURCE_HINT)
            return TypeSource(title="")
        return read_source(self._reader, node)

    def _checked(self, node: Node | None, entry: Entry) -> str:
        if node is None:
            self._reader.complain(
                entry, "it has no date", hint="add checked: 2026-01-31, the day it was compared"
            )
            return ""
        return self._reader.value(node, "checked", read_date, "")

    def _sizes(self, nodes: Mapping[str, Node], entry: Entry) -> dict[str, object]:
        if "size" in nodes:
            size = self._reader.value(nodes["size"], "size", parse_size, 0)
            if "sizes" in nodes:
                self._reader.complain(nodes["sizes"], "a type has either one size, or sizes")
            return {"size_bytes": size, "least_bytes": 1, "most_bytes": size}
        if "sizes" not in nodes:
            if "tiers" not in nodes:
                self._reader.complain(
                    entry, "it has no size", hint="add sizes: {least: 1g, most: 16t}"
                )
            return {}
        bounds = known_entries(self._reader, nodes["sizes"], ("least", "most"), "sizes")
        for name in ("least", "most"):
            if name not in bounds:
                self._reader.complain(nodes["sizes"], f"{name} is missing", hint="such as 1g")
        return {
            f"{name}_bytes": self._reader.value(one.value, name, parse_size, 0)
            for name, one in bounds.items()
            if name in {"least", "most"}
        }

    def _limits(self, nodes: Mapping[str, Node]) -> dict[str, object]:
        values: dict[str, object] = {}
        for name, attribute in _ATTRIBUTES.items():
            if name not in nodes:
                continue
            bought = self._bought(nodes[name]) if name in WRITE_KEYS else None
            if bought is not None:
                values[f"buys_{name}"] = self._provision(bought, name)
            else:
                values[attribute] = self.rules(nodes[name], name)
        if "burst_duration" in nodes:
            values["burst_s"] = self._reader.value(
                nodes["burst_duration"], "burst_duration", parse_duration, None
            )
        if "writes" in nodes:
            for name, one in known_entries(
                self._reader, nodes["writes"], WRITE_KEYS, "writes"
            ).items():
                if name in WRITE_KEYS:
                    values[f"write_{name}"] = self.rules(one.value, name)
        return values

    def _bought(self, node: Node) -> Node | None:
        """Return what stands under ``provisioned``, where that is all there is."""
        entries = node.entries or ()
        if not any(entry.name == "provisioned" for entry in entries):
            return None
        known_entries(self._reader, node, ("provisioned",), "what is bought")
        return next(entry.value for entry in entries if entry.name == "provisioned")

    def _provision(self, node: Node, name: str) -> Provision:
        entries = known_entries(self._reader, node, PROVISION_KEYS, "provisioned")
        values: dict[str, object] = {}
        if "included" in entries:
            read = LIMIT_KEYS[name].read
            values["included"] = self._reader.value(
                entries["included"].value, "included", read, None
            )
        for bound in ("least", "most"):
            if bound in entries:
                values[bound] = self.rules(entries[bound].value, name)
        if "most" not in entries:
            self._reader.complain(node, "most is missing: how much can be bought?")
        return Provision.model_validate(values)

    def rules(self, node: Node, name: str) -> Rules:
        """Return one rule, or several of which the lowest counts."""
        if node.items is not None:
            return tuple(self._rule(item, name) for item in node.items)
        return (self._rule(node, name),)

    def _rule(self, node: Node, name: str) -> Rule:
        read = LIMIT_KEYS[name].read
        if node.is_scalar:
            return Rule(base=self._reader.value(node, name, read, 0.0))
        entries = known_entries(self._reader, node, RULE_KEYS, name)
        values: dict[str, float] = {}
        for key, one in entries.items():
            if key in {"above", "below"}:
                values[f"{key}_bytes"] = self._reader.value(one.value, key, parse_size, 0)
            elif key == "per_tib":
                whole = self._reader.value(one.value, key, read, 0.0)
                values["per_gib"] = values.get("per_gib", 0.0) + whole / _GIB_PER_TIB
            elif key in RULE_KEYS:
                values[key] = self._reader.value(one.value, key, read, 0.0)
        return Rule.model_validate(values)

    def _tiers(self, node: Node) -> tuple[VolumeType, ...]:
        found = []
        for item in self._reader.items(node, "tiers"):
            name = self._reader.given(item, "a tier")
            tier = self._before.get(name)
            if tier is None or not tier.size_bytes:
                self._reader.complain(
                    item,
                    f"{name!r} is no type of one size above this one",
                    hint=f"there are {', '.join(self._before)}" if self._before else "",
                )
            else:
                found.append(tier)
        return tuple(sorted(found, key=lambda tier: tier.size_bytes))

    def _check(self, kind: VolumeType, entry: Entry) -> None:
        """Note what can't be for any size."""
        if 0 < kind.most_bytes < kind.least_bytes:
            self._reader.complain(entry, "its smallest size is above its largest one")
        if kind.burst_s is not None and not (kind.burst_iops or kind.burst_bandwidth):
            self._reader.complain(
                entry, "burst_duration means nothing without burst_iops or burst_bandwidth"
            )
        told = kind.iops or kind.bandwidth or kind.buys_iops or kind.buys_bandwidth or kind.tiers
        if not told:
            self._reader.complain(entry, "it has no limit at all", hint="add iops or bandwidth")


_SOURCE_HINT = "add source: {title: ..., url: ...}, for it or for the whole file"


def read_source(reader: FieldReader, node: Node) -> TypeSource:
    """Return a source: a title, or a mapping with one."""
    if node.entries is None:
        return TypeSource(title=reader.given(node, "source"))
    entries = known_entries(reader, node, SOURCE_KEYS, "source")
    if "title" not in entries:
        reader.complain(node, "source needs a title")
    values = {
        name: reader.given(entries[name].value, name) for name in SOURCE_KEYS if name in entries
    }
    return TypeSource(title=values.get("title", ""), url=values.get("url", ""))


def read_date(text: str) -> str:
    """Return a day as it was written.

    Raises:
        InputError: it is none.
    """
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"{text!r} is no day", hint="write it like 2026-01-31") from None
