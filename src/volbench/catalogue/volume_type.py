"""Volume types: limits as functions of size and provisioned performance.

`volbench.catalogue.evaluate` computes the `Limits` of a volume.
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


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is NULL else [value]


# The lowest value applies; without rules there is no declared limit
Rules = tuple[Rule[float], ...]
ONE_OR_MORE = _OneOrMore()  # Annotation of a list that may be written as a single item


class Provision(Document, Generic[Value]):
    """Performance that can be provisioned in addition to the size."""

    included: Value | None = Field(
        default=None, description="Value by default; without it a value is required."
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


class Wanted(Frozen):
    """A volume of a type whose limits depend on its size or access pattern, not yet known."""

    type: VolumeType  # complete definition, so that no file is needed later
    size_bytes: int | None = None  # size of the volume; None to detect it
    iops: float | None = None  # provisioned IOPS; None for the included amount
    # provisioned bandwidth; None for the included amount
    bandwidth_bytes_per_s: float | None = None
