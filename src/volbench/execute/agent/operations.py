"""Operations that a controller may ask of the agent, by name."""

from collections.abc import Callable

OPERATIONS: "dict[str, Callable[..., object]]" = {}
"""Name of each operation and its function, which is called with keyword arguments."""

AS_ROOT: "frozenset[str]" = frozenset()
"""Operations on devices, which run as root where the inventory says ``sudo: yes``."""
