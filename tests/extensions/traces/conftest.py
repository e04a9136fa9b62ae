"""The loop device of the watches, for recordings."""

from __future__ import annotations

from tests.extensions.watching.conftest import loop

__all__ = ["loop"]
