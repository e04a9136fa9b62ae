"""File format of volume types, and conversion to `VolumeType`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Generic, Self

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from volbench.catalogue.volume_type import (
    ONE_OR_MORE,
    Provision,
    Rule,
    TypeSource,
    Value,
    VolumeType,
)
from volbench.errors import InputError
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

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")

Count = Annotated[Number, Field(ge=0)]  # A number of I/Os or of I/Os per second


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"must be a date, not {text!r}", hint="write it like 2026-01-31") from None


def _check_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        reject(Fault(f"{text!r} is not a valid name", "such as azure, gp3 or P15"))
    return text


Day = Annotated[str, parsed(_day), value_schema("date")]
Name = Annotated[Text, AfterValidator(_check_name)]
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
    def _of_rules(cls, value: object) -> object:
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


_SOURCE_HINT = "add source: {title: ..., url: ...}, for it or for the whole file"
_SAME = ("note", "burst_iops", "burst_ios", "burst_bandwidth", "burst_bytes", "burst_s")


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
    writes: WriteLimits = Field(
        default_factory=WriteLimits, description="Limits of writes that differ from reads."
    )

    @property
    def has_limits(self) -> bool:
        """Whether the type declares any limit."""
        return bool(self.iops or self.bandwidth or self.tiers)


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
            for fault in (*self._missing(name, entry), *self._bad_tiers(name, entry))
        ]
        if faults:
            reject(*faults)
        return self

    def _missing(self, name: str, entry: TypeEntry) -> Iterator[Fault]:
        """Yield missing and contradictory parts of a type."""
        at = ("types", name)
        sizes, day = entry.sizes, "add checked: 2026-01-31, the date of the last check"
        own_burst = entry.burst_iops or entry.burst_bandwidth
        checks = (
            (not (entry.checked or self.checked), "has no date", day),
            (not (entry.source or self.source), "has no source", _SOURCE_HINT),
            (
                not (entry.size_bytes or sizes or entry.tiers),
                "has no size",
                "add sizes: {min: 1g, max: 16t}",
            ),
            (not entry.has_limits, "has no limit", "add iops or bandwidth"),
            (
                entry.burst_s is not None and not own_burst,
                "burst_duration has no effect without burst_iops or burst_bandwidth",
                "",
            ),
            (
                sizes is not None and sizes.min_bytes > sizes.max_bytes,
                "its minimum size is above its maximum size",
                "",
            ),
        )
        yield from (Fault(words, hint, at=at, on_key=True) for bad, words, hint in checks if bad)
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
        found: dict[str, VolumeType] = {}
        for name, entry in self.types.items():
            tiers = (found[tier] for tier in entry.tiers)
            found[name] = self._volume_type(name, entry, tuple(tiers))
        return {kind.name: kind for kind in found.values()}

    def _volume_type(
        self, name: str, entry: TypeEntry, tiers: tuple[VolumeType, ...]
    ) -> VolumeType:
        iops = entry.iops or Limit[Count]()
        bandwidth = entry.bandwidth or Limit[Rate]()
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
