"""The matrix of a profile: a job for each combination of option values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from volbench.model.document.document_model import Document
from volbench.model.document.field_types import Filled, Text
from volbench.model.document.located_errors import Fault, reject
from volbench.model.profile.profile_model import JobSettings
from volbench.model.profile.profile_settings import Name
from volbench.plan.profile.option_values import (
    WrittenAxes,
    WrittenOption,
    WrittenOptions,
    reader_of,
)

_COMBINATIONS_LIMIT = 10_000
_WORD = re.compile(r"\{(.*?)\}")
_SPEAKING = frozenset({"rw", "ioengine"})
"""Options whose values speak for themselves in the name of a job."""

Combination = dict[str, WrittenOption]


class MatrixEntry(Document):
    """Options of some combinations of a matrix."""

    gathered: ClassVar[str] = "options"

    options: WrittenOptions = Field(default_factory=dict)


class MatrixDocument(Document):
    """A job for each combination of the listed values; all other keys are fio options."""

    gathered: ClassVar[str] = "axes"

    role: Name = Field(default="data", description="As for a job.")
    note: Text = Field(default="", description="As for a job.")
    axes: WrittenAxes = Field(default_factory=dict)
    template: Filled = Field(
        default="", alias="name", description="Template of job names, such as {rw}-{bs}."
    )
    exclude: tuple[MatrixEntry, ...] = Field(
        default=(), description="Combinations, or parts of them, to leave out."
    )
    include: tuple[MatrixEntry, ...] = Field(default=(), description="Combinations to add.")

    @model_validator(mode="before")
    @classmethod
    def _without_job_keys(cls, value: object) -> object:
        job_keys = {field.alias or name for name, field in JobSettings.model_fields.items()}
        job_keys |= {"limits", "sections"}
        if isinstance(value, Mapping) and (wrong := [key for key in value if key in job_keys]):
            wrong = [key for key in wrong if key not in cls.model_fields]
            faults = (
                Fault("is not possible in a matrix", "write such jobs in `jobs`", (key,), True)
                for key in wrong
            )
            if wrong:
                reject(*faults)
        return value

    @field_validator("template")
    @classmethod
    def _of_axes(cls, template: str, info: ValidationInfo) -> str:
        """Replace aliases in a template by fio's own names."""
        reader, axes = reader_of(info), info.data.get("axes", {})
        for word in _WORD.findall(template):
            if reader.canonical_name(word) not in axes:
                hint = f"its options are {', '.join(axes)}"
                reject(Fault(f"{{{word}}} is not an option of the matrix", hint))
        return _WORD.sub(lambda match: f"{{{reader.canonical_name(match[1])}}}", template)

    @model_validator(mode="after")
    def _has_combinations(self) -> Self:
        total = math.prod(map(len, self.axes.values()))
        if total > _COMBINATIONS_LIMIT:
            reject(Fault(f"{total} combinations; the maximum is {_COMBINATIONS_LIMIT}"))
        every = [set(canonical(cell).items()) for cell in self._every()]
        unused = [
            Fault("matches no combination", "check its values", at=("exclude", index))
            for index, entry in enumerate(self.exclude)
            if not any(_matches(entry, cell) for cell in every)
        ]
        if unused:
            reject(*unused)
        if not self.include and not any(True for _ in self.cells()):
            reject(Fault("no combination is left", "add lists of values"))
        return self

    def cells(self) -> Iterator[Combination]:
        """Yield the combinations that are not excluded, the last axis changing fastest."""
        for cell in self._every():
            options = set(canonical(cell).items())
            if not any(_matches(entry, options) for entry in self.exclude):
                yield cell

    def _every(self) -> Iterator[Combination]:
        for values in itertools.product(*self.axes.values()) if self.axes else ():
            yield dict(zip(self.axes, values, strict=True))

    def job_name(self, cell: Combination) -> str:
        """Return the name of the job of a combination, from the values as written."""
        if self.template and set(cell) >= set(_WORD.findall(self.template)):
            name = _WORD.sub(lambda match: cell[match[1]].label, self.template)
        else:
            name = "-".join(
                option.label if key in _SPEAKING else f"{key}{option.label}"
                for key, option in cell.items()
            )
        return re.sub(r"[^A-Za-z0-9_-]+", "_", name)


def canonical(cell: Combination) -> dict[str, str | None]:
    """Return canonical options of a combination."""
    return {name: option.value for name, option in cell.items()}


def _matches(entry: MatrixEntry, options: set[tuple[str, str | None]]) -> bool:
    return bool(entry.options) and set(canonical(entry.options).items()) <= options
