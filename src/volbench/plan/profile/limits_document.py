"""Declared limits in a file: as numbers, or by volume type.

``azure/P15`` names a type; ``aws/gp3 size=500g iops=6000`` or the equivalent
``{type: aws/gp3, size: 500g, iops: 6000}`` adds the size and the provisioned performance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from volbench.errors import InputError
from volbench.model.document.document_model import Filled, Text, value_schema
from volbench.model.document.located_errors import Fault, input_fault, reject
from volbench.model.profile.profile_settings import Bytes, LimitNumbers, Limits, VolumeOfType
from volbench.plan.profile.limit_sources import check_machine, declared_limits

# A type with its provider; a rate such as 125MB/s begins with a digit
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9._-]*")

# Burst limit to the required sustained limit, at whose rate the credits refill
_BASES = {
    "burst_iops": "iops",
    "burst_ios": "iops",
    "burst_bandwidth": "bandwidth",
    "burst_bytes": "bandwidth",
}

_ABOVE_BASE = ("burst_iops", "burst_bandwidth")
_OF_A_TYPE = ("size", "iops", "bandwidth", "machine")
_HINT = 'write it like "aws/gp3 size=500g iops=6000 bandwidth=250MiB/s"'


class LimitsDocument(LimitNumbers):
    """Limits declared by the provider: numbers, or a volume type such as `azure/P15`."""

    shorthand: ClassVar[str] = "type"

    type: Annotated[Filled, value_schema("volume type")] = Field(
        default="",
        description="A [volume type](volume-types.md), such as aws/gp3; the numbers follow from "
        "it, and `iops` and `bandwidth` are the provisioned amounts.",
    )
    size_bytes: Bytes | None = Field(
        default=None, alias="size", description="Size of the volume; with a type."
    )
    name: Text = Field(
        default="", description="Name of the volume type, for limits given as numbers."
    )
    checked: Text = Field(
        default="", description="Date of the limits, for those given as numbers: 2026-01-31."
    )

    @model_validator(mode="before")
    @classmethod
    def _type_with_settings(cls, value: object) -> object:
        """Parse ``aws/gp3 size=500g iops=6000``, alone or as the type."""
        value = {"type": value} if isinstance(value, str) else value
        if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
            return value
        name, *settings = value["type"].split() or [""]
        if not _TYPE_NAME.fullmatch(name):
            reject(Fault(f"{value['type']!r} is not a volume type", _HINT, at=("type",)))
        known = dict(setting.partition("=")[::2] for setting in settings)
        if unknown := [key for key in known if key not in _OF_A_TYPE or not known[key]]:
            reject(Fault(f"{unknown[0]!r} is not a property of a volume", _HINT, at=("type",)))
        return {**value, **known, "type": name}

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        content = self.model_dump(
            by_alias=True, exclude={"type", "name", "machine", "checked"}, exclude_none=True
        )
        if wrong := [key for key, value in content.items() if value <= 0]:
            reject(*(Fault(f"must be above 0, not {content[key]:g}", at=(key,)) for key in wrong))
        if self.machine:
            try:
                check_machine(self.machine)
            except InputError as error:
                reject(input_fault(error, at=("machine",)))
        if self.type:
            self._check_type()
        elif self.name and not (content or self.machine):
            reject(Fault("declares no limit", "write type: azure/P15", at=("name",), on_key=True))
        elif self.size_bytes is not None:
            reject(Fault("needs a type", "add type: aws/gp3", at=("size",), on_key=True))
        else:
            self._check_bursts()
        return self

    def _check_type(self) -> None:
        derived = [
            key for key in (*_BASES, "time_percent", "name", "checked") if key in self.document()
        ]
        if derived:
            faults = (
                Fault(f"follows from the type {self.type}", "remove one of them", (key,), True)
                for key in derived
            )
            reject(*faults)
        try:
            self.limits()
        except InputError as error:
            is_alone = set(self.document()) == {"type"}
            reject(input_fault(error, at=("type",) if is_alone else ()))

    def _check_bursts(self) -> None:
        """Refuse a burst limit without its sustained limit, or not above it."""
        content = self.model_dump(by_alias=True, exclude_none=True)
        for key, base in _BASES.items():
            if key in content and base not in content:
                message = f"needs {base}: credits refill at the sustained rate"
                reject(Fault(message, "set both, the sustained limit first", at=(key,)))
            if key in _ABOVE_BASE and key in content and content[key] <= content[base]:
                reject(Fault(f"must be above {base}", at=(key,)))

    def limits(self) -> Limits:
        """Return the limits; evaluation is deferred where they depend on an unknown size."""
        if not self.type:
            return Limits.model_validate(self.model_dump(exclude={"type", "size_bytes"}))
        volume = VolumeOfType(
            type=self.type,
            size_bytes=None if self.size_bytes is None else int(self.size_bytes),
            iops=self.iops,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
        )
        return declared_limits(volume).model_copy(update={"machine": self.machine})


def by_role(value: Any) -> Any:  # noqa: ANN401 - a part of a file
    """Return limits by role; ``*`` means all roles where none is named."""
    names_roles = isinstance(value, Mapping) and any(
        isinstance(item, Mapping)
        or (key not in {"type", "name"} and isinstance(item, str) and _TYPE_NAME.match(item))
        for key, item in value.items()
    )
    return value if names_roles or not isinstance(value, Mapping | str) else {"*": value}


# Limits of all roles, or by role
RoleLimits = Annotated[
    dict[Text, LimitsDocument],
    BeforeValidator(by_role, json_schema_input_type=LimitsDocument | dict[str, LimitsDocument]),
]
