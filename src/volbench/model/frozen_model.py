"""Base class of all models that are read from or stored in files."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_MAX_NAME = 255  # NAME_MAX of Linux (limits.h)


class Frozen(BaseModel):
    """An immutable model that rejects unknown fields."""

    # Deferred: a command builds validators only of the models that it reads.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# Number or size that fits in a column of 64-bit integers
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Seconds = Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]  # Duration below 32 years


def _file_name(text: str) -> str:
    plain = text.isprintable() and "/" not in text and not text.startswith(".")
    if not text or not plain or len(text.encode()) > _MAX_NAME:
        raise ValueError("must be the name of a file, not a path")
    return text


# Name of a file or folder, without separators: cannot point outside its parent folder
FileName = Annotated[str, AfterValidator(_file_name)]
