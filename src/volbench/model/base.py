"""The base of every model that is read from a file or stored in one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
