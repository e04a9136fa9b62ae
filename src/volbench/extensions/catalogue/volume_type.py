"""Volume types, whose limits are functions of size and provisioned performance; their catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from volbench.errors import InputError, quoted
from volbench.model.document.document_model import Document, Filled, Size
from volbench.model.document.located_errors import NULL
from volbench.model.frozen_model import Frozen
from volbench.model.profile.profile_settings import Limits, VolumeOfType
from volbench.units import format_capacity, format_rate

GIB = 1 << 30
_MIB = 1 << 20
_GIB_PER_TIB = 1024
Value = TypeVar("Value", bound=float)
_ZERO: Any = 0  # of any kind of number
# Provisioned quantity: its name and text in messages, and how one is written
_PROVISIONED: dict[str, tuple[str, Callable[[float], str], str]] = {
    "iops": ("IOPS", lambda value: f"{value:,.10g} IOPS", "size=500g iops=6000"),
    "bandwidth": ("bandwidth", format_rate, "size=2t bandwidth=100MiB/s"),
}


class Rule(Document, Generic[Value]):
    """A linear function of size and provisioned performance, with lower and upper bounds."""

    shorthand: ClassVar[str] = "base"

    base: Value = Field(default=_ZERO, description="Value of every volume.")
    per_gib: Value = Field(default=_ZERO, description="Added per GiB of the volume.")
    per_tib: Value = Field(default=_ZERO, description="Added per TiB; kept as `per_gib`.")
    per_iops: Value = Field(default=_ZERO, description="Added per provisioned IOPS.")
    per_mib_s: Value = Field(default=_ZERO, description="Added per provisioned MiB/s.")
    min: Value | None = Field(default=None, description="Minimum.")
    max: Value | None = Field(default=None, description="Maximum.")
    above_bytes: Size = Field(
        default=0, alias="above", description="Applies to larger volumes only."
    )
    below_bytes: Size = Field(
        default=0, alias="below", description="Applies to smaller volumes only."
    )

    @model_validator(mode="after")
    def _by_gib(self) -> Self:
        if not self.per_tib:
            return self
        per_gib = self.per_gib + self.per_tib / _GIB_PER_TIB
        return self.model_copy(update={"per_gib": per_gib, "per_tib": 0.0})

    @property
    def needs_size(self) -> bool:
        """Whether the limit depends on the size of the volume."""
        return bool(self.per_gib or self.above_bytes or self.below_bytes)


class _OneOrMore:
    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_before_validator_function(_as_list, handler(source))

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        array = handler(core_schema)
        return {"anyOf": [array["items"], array]}


ONE_OR_MORE = _OneOrMore()  # Annotation of a list that may be written as a single item


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is NULL else [value]


# The lowest value applies; without rules there is no declared limit
Rules = tuple[Rule[float], ...]


class Provision(Document, Generic[Value]):
    """Performance that can be provisioned in addition to the size."""

    included: Value | None = Field(
        default=None, description="Default value; without it a value is required."
    )
    min: Annotated[tuple[Rule[Value], ...], ONE_OR_MORE] = Field(
        default=(), description="Minimum that can be provisioned."
    )
    max: Annotated[tuple[Rule[Value], ...], ONE_OR_MORE] = Field(
        description="Maximum that can be provisioned."
    )


class TypeSource(Document):
    """Source of a fact."""

    shorthand: ClassVar[str] = "title"

    title: Filled = Field(description="Title of the page, with its publisher.")
    url: Filled = Field(default="", description="Address of the page.")
    page: Filled = Field(
        default="", description="Date or revision of the page that was read, such as 2026-08-11."
    )


class VolumeType(Frozen):
    """A volume type of a provider."""

    name: str  # name with its provider, such as ``aws/gp2``
    title: str  # the provider's name for it
    source: TypeSource  # page that documents the limits
    checked: str  # date of the last check, ISO 8601
    note: str = ""  # restrictions that the limits do not cover
    size_bytes: int = 0  # size of a fixed-size type; 0 for others
    min_bytes: int = 0  # minimum size
    max_bytes: int = 0  # maximum size
    # fixed-size types that volumes of this type are assigned to, ascending
    tiers: tuple[VolumeType, ...] = ()
    # range of provisioned IOPS; None where they cannot be provisioned
    buys_iops: Provision[float] | None = None
    # range of provisioned bandwidth; None where it cannot be provisioned
    buys_bandwidth: Provision[float] | None = None
    iops: Rules = ()  # sustained IOPS, where they are not provisioned
    bandwidth: Rules = ()  # sustained bytes per second, where they are not provisioned
    write_iops: Rules = ()  # IOPS of writes, where they differ from reads
    write_bandwidth: Rules = ()  # bandwidth of writes, where it differs from reads
    burst_iops: Rules = ()  # IOPS while credits last
    burst_ios: Rules = ()  # I/O credits in a full bucket
    burst_bandwidth: Rules = ()  # bytes per second while credits last
    burst_bytes: Rules = ()  # byte credits in a full bucket
    # duration of a burst from full buckets, where the provider documents this instead of the
    # credits
    burst_s: float | None = None
    # percentage of the time for which the limits are promised; None where nothing is
    time_percent: float | None = None

    @property
    def needs_size(self) -> bool:
        """Whether the limits depend on a size that the type does not fix."""
        return not self.size_bytes and (
            bool(self.tiers) or any(rule.needs_size for rule in self._rules())
        )

    @property
    def is_one_for_all(self) -> bool:
        """Whether reads and writes have the same limits."""
        return not (self.write_iops or self.write_bandwidth)

    def _rules(self) -> Iterator[Rule[float]]:
        for provision in (self.buys_iops, self.buys_bandwidth):
            if provision is not None:
                yield from (*provision.min, *provision.max)
        yield from (*self.iops, *self.bandwidth, *self.write_iops, *self.write_bandwidth)
        yield from (*self.burst_iops, *self.burst_ios, *self.burst_bandwidth, *self.burst_bytes)


def evaluate(kind: VolumeType, volume: VolumeOfType, *, writes: bool | None = None) -> Limits:
    """Return the limits of a volume of a type."""
    tier = _tier(kind, volume.size_bytes)
    sized = _SizedVolume(tier, volume.size_bytes or tier.size_bytes)
    _check_size(kind, tier, sized.size_bytes)
    bought = _provisioned(sized, "iops", volume.iops)
    sized.iops = bought or sized.lowest(tier.iops)
    sized.bandwidth = _provisioned(sized, "bandwidth", volume.bandwidth_bytes_per_s)
    iops = _sustained(sized, "iops", provisioned=bought, writes=writes)
    bandwidth = _sustained(sized, "bandwidth", provisioned=sized.bandwidth, writes=writes)
    return Limits(
        name=kind.name,
        checked=tier.checked,
        iops=iops,
        bandwidth_bytes_per_s=bandwidth,
        time_percent=tier.time_percent,
        **_burst(sized, "iops", "ios", base=iops),
        **_burst(sized, "bandwidth_bytes_per_s", "bytes", base=bandwidth),
    )


@dataclass
class _SizedVolume:
    """Input of the rules of a type."""

    kind: VolumeType
    size_bytes: int
    iops: float | None = None
    bandwidth: float | None = None

    def lowest(self, rules: Rules) -> float | None:
        """Return the lowest value of the rules; None when none applies."""
        values = (self._rule_value(rule) for rule in rules)
        return min((value for value in values if value is not None), default=None)

    def _rule_value(self, rule: Rule[float]) -> float | None:
        if rule.above_bytes and self.size_bytes <= rule.above_bytes:
            return None
        if rule.below_bytes and self.size_bytes >= rule.below_bytes:
            return None
        value = rule.base + rule.per_gib * self.size_bytes / GIB
        value += rule.per_iops * (self.iops or 0.0)
        value += rule.per_mib_s * (self.bandwidth or 0.0) / _MIB
        value = value if rule.min is None else max(value, rule.min)
        return value if rule.max is None else min(value, rule.max)


def _tier(kind: VolumeType, size_bytes: int | None) -> VolumeType:
    """Return the type itself, or the smallest tier of sufficient size."""
    if not kind.tiers:
        return kind
    if size_bytes is None:
        raise _unknown_size(kind)
    return next((tier for tier in kind.tiers if size_bytes <= tier.size_bytes), kind.tiers[-1])


def _check_size(kind: VolumeType, tier: VolumeType, size_bytes: int) -> None:
    if not size_bytes:
        if tier.needs_size:
            raise _unknown_size(tier)
    elif not tier.min_bytes <= size_bytes <= tier.max_bytes:
        low, high = format_capacity(tier.min_bytes), format_capacity(tier.max_bytes)
        raise InputError(
            f"a volume of {format_capacity(size_bytes)} cannot be of type {kind.name}: "
            + (f"the maximum is {high}" if tier.size_bytes else f"sizes are {low} to {high}"),
            hint=f"see: volbench audit --list {quoted(kind.name)}",
        )


def _unknown_size(kind: VolumeType) -> InputError:
    return InputError(
        f"the limits of {kind.name} depend on the size, which is unknown",
        hint=f'declare it: "{kind.name} size=100g"',
    )


def _provisioned(sized: _SizedVolume, key: str, chosen: float | None) -> float | None:
    """Return the provisioned amount; None where the type has no provisioning."""
    provision: Provision[float] | None = getattr(sized.kind, f"buys_{key}")
    quantity, text, example = _PROVISIONED[key]
    name = sized.kind.name
    if provision is None:
        if chosen is None:
            return None
        raise InputError(
            f"{name} has no provisioned {quantity}",
            hint=f"leave out {key}: it follows from the type",
        )
    low, high = sized.lowest(provision.min), sized.lowest(provision.max)
    if chosen is None:
        if provision.included is None:
            raise InputError(
                f"{name} has no default {quantity}: an amount must be provisioned",
                hint=f'write it like "{name} {example}"',
            )
        return provision.included if high is None else min(provision.included, high)
    if (low is not None and chosen < low) or (high is not None and chosen > high):
        size = f" of {format_capacity(sized.size_bytes)}" if sized.size_bytes else ""
        bounds = [f"at least {text(low)}"] if low is not None else []
        bounds += [f"at most {text(high)}"] if high is not None else []
        raise InputError(
            f"{name}{size} supports {' and '.join(bounds)}, not {text(chosen)}",
            hint=f"see: volbench audit --list {quoted(name)}",
        )
    return chosen


def _sustained(
    sized: _SizedVolume, key: str, *, provisioned: float | None, writes: bool | None
) -> float | None:
    reads = provisioned if provisioned is not None else sized.lowest(getattr(sized.kind, key))
    limit_of_writes = sized.lowest(getattr(sized.kind, f"write_{key}"))
    if limit_of_writes is None or writes is False:
        return reads
    return limit_of_writes if writes or reads is None else min(reads, limit_of_writes)


def _burst(
    sized: _SizedVolume, rate: str, credits_: str, *, base: float | None
) -> dict[str, float]:
    kind = sized.kind
    burst = sized.lowest(getattr(kind, f"burst_{rate.removesuffix('_bytes_per_s')}"))
    if burst is None or base is None or burst <= base:
        return {}
    full = sized.lowest(getattr(kind, f"burst_{credits_}"))
    if full is None and kind.burst_s is not None:
        # Credits refill while they are spent, so only the difference drains the bucket.
        full = (burst - base) * kind.burst_s
    return {f"burst_{rate}": burst, **({} if full is None else {f"burst_{credits_}": full})}
