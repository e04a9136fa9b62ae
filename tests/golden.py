"""Recorded campaigns of every format of the campaign folder: tests/campaigns/<format>/."""

import shutil
from pathlib import Path

CAMPAIGNS = Path(__file__).parent / "campaigns"
GOLDEN = sorted(path for path in CAMPAIGNS.iterdir() if path.is_dir())
"""One folder for each format, and for each way of recording it; never changed once released."""


def copy_of(golden: Path, to: Path) -> Path:
    """Copy a recorded campaign to where it may be changed."""
    shutil.copytree(golden, to)
    return to
