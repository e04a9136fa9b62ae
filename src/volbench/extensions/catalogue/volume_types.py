"""Catalogue of volume types, bundled and user-defined, and their file format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, Self, TypeVar

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from volbench.errors import InputError, nearest
from volbench.extensions.catalogue.volume_type import (
    ONE_OR_MORE,
    Provision,
    Rule,
    TypeSource,
    Value,
    VolumeType,
    evaluate,
)
from volbench.model.document.document_model import (
    Document,
    Duration,
    Filled,
    Number,
    Rate,
    Size,
    Text,
    parsed,
    value_schema,
)
from volbench.model.document.located_errors import Fault, reject
from volbench.model.document.yaml_text import read_document
from volbench.model.profile.profile_settings import Limits, VolumeOfType
from volbench.plan.bundled_files import bundled_folder, read_text

Count = Annotated[Number, Field(ge=0)]  # A number of I/Os or of I/Os per second
_SOURCE_HINT = "add source: {title: ..., url: ...}, for it or for the whole file"
_SAME = (
    *("note", "burst_iops", "burst_ios", "burst_bandwidth", "burst_bytes", "burst_s"),
    "time_percent",
)
FOLDER = "volume-types"  # Name of the folders with volume-type files
_SUFFIXES = (".yaml", ".yml")
_Entry = TypeVar("_Entry")


def _parse_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"must be a date, not {text!r}", hint="write it like 2026-01-31") from None


def _checked_name(text: str) -> str:
    if not re.fullmatch("[A-Za-z][A-Za-z0-9._-]{0,63}", text):
        reject(Fault(f"{text!r} is not a valid name", "such as azure, gp3 or P15"))
    return text


Day = Annotated[str, parsed(_parse_day), value_schema("date")]
Name = Annotated[Text, AfterValidator(_checked_name)]
CountRules = Annotated[tuple[Rule[Count], ...], ONE_OR_MORE]
RateRules = Annotated[tuple[Rule[Rate], ...], ONE_OR_MORE]
SizeRules = Annotated[tuple[Rule[Size], ...], ONE_OR_MORE]


class Limit(Document, Generic[Value]):
    """A sustained limit: by rules, or provisioned."""

    rules: Annotated[tuple[Rule[Value], ...], ONE_OR_MORE] = Field(
        default=(), description="Rules; the lowest value applies."
    )
    provisioned: Provision[Value] | None = Field(
        default=None, description="Range that can be provisioned."
    )

    @model_validator(mode="before")
    @classmethod
    def _as_rules(cls, value: object) -> object:
        is_provisioned = isinstance(value, Mapping) and "provisioned" in value
        return value if is_provisioned or isinstance(value, Limit) else {"rules": value}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema of a rule, a list of rules, or a provisioned range."""
        properties = handler.resolve_ref_schema(handler(core_schema))["properties"]
        provisioned = {
            "type": "object",
            "properties": {"provisioned": properties["provisioned"]},
            "required": ["provisioned"],
            "additionalProperties": False,
        }
        return {"anyOf": [*properties["rules"]["anyOf"], provisioned]}


class SizeRange(Document):
    """Range of volume sizes."""

    min_bytes: Size = Field(alias="min", description="Minimum.")
    max_bytes: Size = Field(alias="max", description="Maximum.")


class WriteLimits(Document):
    """Limits of writes, where they differ from reads."""

    iops: CountRules = Field(default=(), description="IOPS of writes.")
    bandwidth: RateRules = Field(default=(), description="Bandwidth of writes.")


class TypeEntry(Document):
    """A volume type in its file."""

    title: Filled = Field(default="", description="The provider's name for it.")
    source: TypeSource | None = Field(default=None, description="Page that documents the limits.")
    checked: Day = Field(default="", description="Date of the last check: 2026-01-31.")
    note: Filled = Field(default="", description="Restrictions that the limits do not cover.")
    size_bytes: Size = Field(default=0, alias="size", description="Size of a fixed-size type.")
    sizes: SizeRange | None = Field(default=None, description="Range of sizes, for other types.")
    tiers: tuple[Text, ...] = Field(
        default=(), description="Fixed-size types that volumes of this type are assigned to."
    )
    iops: Limit[Count] | None = Field(default=None, description="Sustained.")
    bandwidth: Limit[Rate] | None = Field(default=None, description="Sustained.")
    burst_iops: CountRules = Field(default=(), description="IOPS while credits last.")
    burst_ios: CountRules = Field(default=(), description="I/O credits in a full bucket.")
    burst_bandwidth: RateRules = Field(default=(), description="Bandwidth while credits last.")
    burst_bytes: SizeRules = Field(default=(), description="Byte credits in a full bucket.")
    burst_s: Duration | None = Field(
        default=None, alias="burst_duration", description="Duration of a burst from full buckets."
    )
    time_percent: Number | None = Field(
        default=None,
        gt=0,
        lt=100,
        description="Percentage of the time for which the provider promises the limits.",
    )
    writes: WriteLimits = Field(
        default_factory=WriteLimits, description="Limits of writes that differ from reads."
    )


class TypesFile(Document):
    """Volume types of one provider."""

    provider: Name = Field(description="First part of each name.", examples=["azure"])
    checked: Day = Field(default="", description="Default for types without a date.")
    source: TypeSource | None = Field(
        default=None, description="Default for types without a source."
    )
    types: dict[Name, TypeEntry] = Field(description="Types by name.", examples=["{P15: {...}}"])

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        faults = [
            fault
            for name, entry in self.types.items()
            for fault in (*self._missing_parts(name, entry), *self._bad_tiers(name, entry))
        ]
        if faults:
            reject(*faults)
        return self

    def _missing_parts(self, name: str, entry: TypeEntry) -> Iterator[Fault]:
        at = ("types", name)
        sizes, day = entry.sizes, "add checked: 2026-01-31, the date of the last check"
        no_size = not (entry.size_bytes or sizes or entry.tiers)
        no_limit = not (entry.iops or entry.bandwidth or entry.tiers)
        idle_burst = entry.burst_s is not None and not (entry.burst_iops or entry.burst_bandwidth)
        no_range = sizes is not None and sizes.min_bytes > sizes.max_bytes
        checks = (
            (not (entry.checked or self.checked), "has no date", day),
            (not (entry.source or self.source), "has no source", _SOURCE_HINT),
            (no_size, "has no size", "add sizes: {min: 1g, max: 16t}"),
            (no_limit, "has no limit", "add iops or bandwidth"),
            (idle_burst, "burst_duration has no effect without burst_iops or burst_bandwidth", ""),
            (no_range, "its minimum size is above its maximum size", ""),
        )
        yield from (
            Fault(message, hint, at=at, on_key=True) for bad, message, hint in checks if bad
        )
        if entry.size_bytes and sizes:
            yield Fault("a type has either one size, or sizes", at=(*at, "sizes"))

    def _bad_tiers(self, name: str, entry: TypeEntry) -> Iterator[Fault]:
        """Yield tiers that are not fixed-size types defined before the type."""
        names = list(self.types)
        before = names[: names.index(name)]
        for number, tier in enumerate(entry.tiers):
            if tier not in before or not self.types[tier].size_bytes:
                yield Fault(
                    f"{tier!r} is not a fixed-size type defined before this one",
                    f"there are {', '.join(before)}" if before else "",
                    at=("types", name, "tiers", number),
                )

    def volume_types(self) -> dict[str, VolumeType]:
        """Return the types by name with their provider, such as ``aws/gp2``, in file order."""
        types: dict[str, VolumeType] = {}
        for name, entry in self.types.items():
            types[name] = self._volume_type(name, entry, [types[tier] for tier in entry.tiers])
        return {kind.name: kind for kind in types.values()}

    def _volume_type(self, name: str, entry: TypeEntry, tiers: list[VolumeType]) -> VolumeType:
        # Not validated: without rules there is no limit, rather than one of 0.
        iops = entry.iops or Limit[Count].model_construct()
        bandwidth = entry.bandwidth or Limit[Rate].model_construct()
        sizes, source = entry.sizes, entry.source or self.source
        if source is None:
            raise AssertionError("a type without a source is refused when its file is read")
        return VolumeType(
            name=f"{self.provider}/{name}",
            title=entry.title or name,
            source=source,
            checked=entry.checked or self.checked,
            size_bytes=entry.size_bytes,
            min_bytes=sizes.min_bytes if sizes else int(bool(entry.size_bytes)),
            max_bytes=sizes.max_bytes if sizes else entry.size_bytes,
            tiers=tuple(sorted(tiers, key=lambda tier: tier.size_bytes)),
            buys_iops=iops.provisioned,
            buys_bandwidth=bandwidth.provisioned,
            iops=iops.rules,
            bandwidth=bandwidth.rules,
            write_iops=entry.writes.iops,
            write_bandwidth=entry.writes.bandwidth,
            **{key: getattr(entry, key) for key in _SAME},
        )


def catalogue() -> dict[str, VolumeType]:
    """Return all volume types by name: bundled ones, then those of `own_folders`."""
    types = dict(bundled_types())
    for folder in own_folders():
        for path in yaml_files(folder):
            types |= read_types(path)
    return types


def own_folders() -> tuple[Path, ...]:
    """Return the user's folders of volume types: in the configuration, then the current folder."""
    configured = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return (Path(configured).expanduser() / "volbench" / FOLDER, Path(FOLDER))


def read_types(path: Path) -> dict[str, VolumeType]:
    """Return the types in a file."""
    return parse_types(read_text(path, what="file of volume types"), path=str(path))


@cache  # a campaign asks for each of its hosts
def parse_types(text: str, *, path: str) -> dict[str, VolumeType]:
    """Return the types defined in a text, by name such as ``aws/gp2``, in file order."""
    what, needs = "a file of volume types", "a provider and types"
    return read_document(text, TypesFile, path=path, what=what, needs=needs).volume_types()


def find_type(name: str, types: Mapping[str, VolumeType]) -> VolumeType:
    """Return a type by name."""
    return entry_of(name, types, kind="volume type")


def entry_of(name: str, entries: Mapping[str, _Entry], *, kind: str) -> _Entry:
    """Return the entry of a catalogue with a name."""
    if name in entries:
        return entries[name]
    by_case = {known.lower(): known for known in entries}
    near = by_case.get(name.lower()) or nearest(name, list(entries))
    raise InputError(
        f"there is no {kind} {name!r}",
        hint=f"did you mean `{near}`?" if near else "see: volbench audit --list",
    )


def declared_limits(volume: VolumeOfType) -> Limits:
    """Return the limits of a declared volume.

    The numbers are missing as long as they depend on an unknown size, or on whether a run reads or
    writes; then the limits hold the volume.
    """
    kind = find_type(volume.type, catalogue())
    if not kind.needs_size or volume.size_bytes is not None:
        limits = evaluate(kind, volume)
        if kind.is_one_for_all:
            return limits
    return Limits(name=kind.name, wanted=volume, checked=kind.checked)


def known_limits(volume: VolumeOfType, *, writes: bool | None) -> Limits | None:
    """Return the limits of a volume as one run uses it; None if its size is needed and unknown."""
    kind = find_type(volume.type, catalogue())
    if kind.needs_size and volume.size_bytes is None:
        return None
    return evaluate(kind, volume, writes=writes)


@cache
def bundled_types() -> Mapping[str, VolumeType]:
    """Return the bundled types by name."""
    types: dict[str, VolumeType] = {}
    for path in yaml_files(bundled_folder(FOLDER)):
        types |= parse_types(path.read_text(encoding="utf-8"), path=path.name)
    return types


def yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of a folder, sorted by name; none if it does not exist."""
    entries: Iterable[Path] = folder.iterdir() if folder.is_dir() else ()
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.name.endswith(_SUFFIXES) and entry.is_file():
            yield entry
