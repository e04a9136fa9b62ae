"""Script that prints the time on hosts whose `date` has no nanoseconds."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from volbench.execute.shell.posix_scripts import NOW

COARSE = 'date() { busybox date "$@"; }; awk() { busybox awk "$@"; }; '
NANO = "busybox adjtimex | sed 's/status: .*/status: 8256/; s/tv_usec: */&000/'"


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox is not installed")
@pytest.mark.parametrize(
    ("programs", "digits"),
    [
        ("", 9),
        (COARSE + "adjtimex() { busybox adjtimex; }; ", 6),
        (COARSE + f"adjtimex() {{ {NANO}; }}; ", 9),
        (COARSE + "adjtimex() { return 127; }; ", 0),
    ],
)
def test_the_time_is_as_fine_as_the_host_allows(programs: str, digits: int) -> None:
    """A start that is read in whole seconds would be up to a second late."""
    before_s = time.time()
    done = subprocess.run(
        ["sh", "-c", f"{programs}{NOW}; now"], capture_output=True, text=True, check=True
    )
    seconds, _, fraction = done.stdout.strip().partition(".")
    assert len(fraction) == digits
    assert abs(int(seconds) - before_s) < 30
