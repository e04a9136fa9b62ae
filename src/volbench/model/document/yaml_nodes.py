"""YAML nodes with line and column, for validation and located errors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A value in a YAML file."""

    line: int  # 1-based
    column: int  # 1-based
    key: str  # dotted path from the top, such as ``jobs.test1.bs``
    raw: str | bool | None = None  # text, True, False or None (null) of a scalar
    # keys and values of a mapping, in file order; None for anything else
    entries: tuple[Entry, ...] | None = None
    items: tuple[Node, ...] | None = None  # values of a list; None for anything else

    @property
    def kind(self) -> str:
        """Kind of node, for messages."""
        if self.entries is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        return "nothing" if self.raw is None else "a value"

    @property
    def is_scalar(self) -> bool:
        """Whether the node is a single value or null."""
        return self.entries is None and self.items is None


@dataclass(frozen=True)
class Entry:
    """A key of a mapping with its value; line and column are those of the key."""

    name: str
    line: int
    column: int
    value: Node
