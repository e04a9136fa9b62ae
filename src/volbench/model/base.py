"""The base of every model that is read from a file or stored in one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model that refuses fields it does not know."""

    # Deferred: a command builds validators only of the models that it reads.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
