"""The gallery in docs/ shows every kind of chart, in small files."""

import re
from pathlib import Path

import pytest

from volbench.present.plots.kinds import KINDS

DOCS = Path(__file__).parents[2] / "docs"
MOST_BYTES = 100_000


def page() -> str:
    """Return the gallery."""
    return (DOCS / "gallery.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_is_in_the_gallery(kind: str) -> None:
    """A kind has a heading, its command and a picture that is there and small."""
    found = re.search(
        rf"## {re.escape(kind)}\n.*?!\[{re.escape(kind)}\]\((\S+)\)", page(), re.DOTALL
    )
    assert found
    assert f"volbench plot {kind} " in found[0]
    assert 0 < (DOCS / found[1]).stat().st_size <= MOST_BYTES
