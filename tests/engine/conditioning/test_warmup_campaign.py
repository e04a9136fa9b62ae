"""Verification of warm-ups; `test_warmup.py` has warm-ups by real fio."""

import pytest

from volbench.engine.conditioning.volume_warmup import Pass, verification_text
from volbench.errors import CampaignError


@pytest.mark.parametrize(
    ("direction", "moved", "unfinished"),
    [("write", 99, 0), ("write", 101, 0), ("write", 100, 1), ("random", 99, 0), ("random", 101, 1)],
)
def test_a_pass_over_less_or_more_than_the_volume_is_not_verified(
    direction: str, moved: int, unfinished: int
) -> None:
    """Blocks left out or done twice are told as an error; sprandom writes some more than once."""
    failed = Pass("/dev/x", "fill", direction, 100, moved, 1.0, (99.0,), unfinished)
    with pytest.raises(CampaignError, match="not verified as warm"):
        verification_text([failed])
    assert "99 of" not in verification_text([Pass("/dev/x", "f", "read", 9, 9, 1.0, (9.0,), 0)])
    more = Pass("/dev/x", "fill", "random", 100, 115, 1.0, (99.0,), 0)
    assert "writes in random order: 115 of 100 bytes" in verification_text([more])
