"""Numbers in the sentences of findings."""

from __future__ import annotations

import math

from volbench.model.campaign.planned_run import Run
from volbench.model.profile.profile_model import Tool
from volbench.units import format_rate


def amount(size_bytes: float) -> str:
    """Return bytes for people in SI units: ``3.2 GB``."""
    return format_rate(size_bytes).removesuffix("/s")


def percent(share: float) -> str:
    """Return a share of 1 as ``35 %``; small ones keep a digit, unknown ones read ``n/a``."""
    if math.isnan(share):
        return "n/a"
    shown = f"{share * 100:.0f}" if share >= 0.1 or share == 0 else f"{share * 100:.2g}"
    return f"{shown} %"


def tool_name(run: Run) -> str:
    """Return who did the I/O."""
    return "dd" if run.tool is Tool.DD else "fio"


def several(words: list[str]) -> str:
    """Return words as a list in a sentence: ``a, b and c``."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
