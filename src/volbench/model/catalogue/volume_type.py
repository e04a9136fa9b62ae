"""Volume types: limits as rules of size and provisioning.

`volbench.plan.volume_types.evaluate` makes `Limits` of a type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from volbench.model.base import Frozen
from volbench.model.document.document_model import Document, Filled, Size
from volbench.model.document.located_errors import NULL

_GIB_PER_TIB = 1024
Value = TypeVar("Value", bound=float)
_ZERO: Any = 0  # of any kind of number


class Rule(Document, Generic[Value]):
    """A straight line over size and what is provisioned, between two bounds."""

    shorthand: ClassVar[str] = "base"

    base: Value = Field(default=_ZERO, description="What every volume has.")
    per_gib: Value = Field(default=_ZERO, description="More for each GiB of the volume.")
    per_tib: Value = Field(default=_ZERO, description="More for each TiB; kept as `per_gib`.")
    per_iops: Value = Field(default=_ZERO, description="More for each provisioned IOPS.")
    per_mib_s: Value = Field(default=_ZERO, description="More for each provisioned MiB/s.")
    least: Value | None = Field(default=None, description="Never below.")
    most: Value | None = Field(default=None, description="Never above.")
    above_bytes: Size = Field(
        default=0, alias="above", description="It holds for larger volumes only."
    )
    below_bytes: Size = Field(
        default=0, alias="below", description="It holds for smaller volumes only."
    )

    @model_validator(mode="after")
    def _by_gib(self) -> Self:
        if not self.per_tib:
            return self
        per_gib = self.per_gib + self.per_tib / _GIB_PER_TIB
        return self.model_copy(update={"per_gib": per_gib, "per_tib": 0.0})

    @property
    def needs_size(self) -> bool:
        """Whether it depends on the size of the volume."""
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


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is NULL else [value]


Rules = tuple[Rule[float], ...]
"""The lowest of them counts; none at all says that nothing is promised."""
ONE_OR_MORE = _OneOrMore()
"""Annotation of a list that may be written as its only item."""


class Provision(Document, Generic[Value]):
    """What can be provisioned beside the size."""

    included: Value | None = Field(
        default=None, description="What a volume has otherwise; without it one has to choose."
    )
    least: Annotated[tuple[Rule[Value], ...], ONE_OR_MORE] = Field(
        default=(), description="That can be chosen."
    )
    most: Annotated[tuple[Rule[Value], ...], ONE_OR_MORE] = Field(description="That can be chosen.")


class TypeSource(Document):
    """Where a fact comes from."""

    shorthand: ClassVar[str] = "title"

    title: Filled = Field(description="Of the page, with its publisher.")
    url: Filled = Field(default="", description="Of the page.")


class VolumeType(Frozen):
    """A kind of volume that can be bought.

    Attributes:
        name: with its provider, such as ``aws/gp2``.
        title: what the provider calls it.
        source: the page its limits are from.
        checked: when somebody compared them, ISO 8601.
        note: what the limits leave out.
        size_bytes: of a type that comes in one size; 0 for others.
        least_bytes: the smallest volume.
        most_bytes: the largest volume.
        tiers: the types of one size each, ascending, that a volume of this type may be.
        buys_iops: how I/O operations a second are bought; None where they are not.
        buys_bandwidth: how bandwidth is bought; None where it is not.
        iops: sustained, where it is not bought.
        bandwidth: sustained, in bytes a second, where it is not bought.
        write_iops: of writes, where it is not that of reads.
        write_bandwidth: of writes, where it is not that of reads.
        burst_iops: while credits last.
        burst_ios: credits of a full bucket, in I/Os.
        burst_bandwidth: while credits last, in bytes a second.
        burst_bytes: credits of a full bucket, in bytes.
        burst_s: how long full buckets last at the burst rate, where that is what is told of them.
    """

    name: str
    title: str
    source: TypeSource
    checked: str
    note: str = ""
    size_bytes: int = 0
    least_bytes: int = 0
    most_bytes: int = 0
    tiers: tuple[VolumeType, ...] = ()
    buys_iops: Provision[float] | None = None
    buys_bandwidth: Provision[float] | None = None
    iops: Rules = ()
    bandwidth: Rules = ()
    write_iops: Rules = ()
    write_bandwidth: Rules = ()
    burst_iops: Rules = ()
    burst_ios: Rules = ()
    burst_bandwidth: Rules = ()
    burst_bytes: Rules = ()
    burst_s: float | None = None

    @property
    def needs_size(self) -> bool:
        """Whether its limits depend on the size, which it does not tell itself."""
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
                yield from (*provision.least, *provision.most)
        yield from (*self.iops, *self.bandwidth, *self.write_iops, *self.write_bandwidth)
        yield from (*self.burst_iops, *self.burst_ios, *self.burst_bandwidth, *self.burst_bytes)


class Wanted(Frozen):
    """A volume of a type whose limits wait for its size, or for what is done to it.

    Attributes:
        type: with all it says, so that no file is needed later.
        size_bytes: None when the volume itself is to tell.
        iops: that is bought; None for what is included.
        bandwidth_bytes_per_s: that is bought; None for what is included.
    """

    type: VolumeType
    size_bytes: int | None = None
    iops: float | None = None
    bandwidth_bytes_per_s: float | None = None
