"""How fast a warm-up goes: extents and the seconds they took in, seconds to expect out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from volbench.model.campaign.planned_run import Extent

_REMEMBERED = 4
"""Extents that the pace is taken from: what the first blocks did says little about the last."""


@dataclass
class Pace:
    """Bytes and seconds of the last extents, by direction."""

    seen: dict[str, deque[tuple[int, float]]] = field(default_factory=dict)

    def note(self, extent: Extent, seconds: float) -> None:
        """Take an extent into account that was finished."""
        own = self.seen.setdefault(extent.direction, deque(maxlen=_REMEMBERED))
        own.append((extent.size_bytes, seconds))

    def expected_s(self, extent: Extent) -> float | None:
        """Return what an extent should take; by another direction's pace before its own is known.

        Args:
            extent: to be done.

        Returns:
            None when nothing was finished yet.
        """
        own = self.seen.get(extent.direction) or next(iter(self.seen.values()), None)
        if not own:
            return None
        seconds = sum(took_s for _, took_s in own)
        return extent.size_bytes * seconds / sum(size_bytes for size_bytes, _ in own)
