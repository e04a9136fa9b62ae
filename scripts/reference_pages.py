"""Writer of generated reference pages."""

from __future__ import annotations

import sys
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def write_page(name: str, text: str) -> None:
    """Write `NAME.md` into docs/reference, or into the folder in `sys.argv`."""
    reference = Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE
    (reference / f"{name}.md").write_text(text, encoding="utf-8")
