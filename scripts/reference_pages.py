"""Writer of generated reference pages: an index and a folder of pages of the same name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def write_pages(name: str, index: str, pages: Mapping[str, str]) -> None:
    """Write `NAME.md` and `NAME/PAGE.md` into docs/reference, or into the folder in `sys.argv`."""
    reference = Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE
    folder = reference / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (reference / f"{name}.md").write_text(index, encoding="utf-8")
    for page, text in pages.items():
        (folder / f"{page}.md").write_text(text, encoding="utf-8")
