"""Proof of a warm-up; `tests/cli/test_warmup.py` has those of real fio."""

import pytest

from volbench.engine.conditioning.volume_warmup import Pass, verification_text
from volbench.errors import CampaignError


@pytest.mark.parametrize(("moved", "unfinished"), [(99, 0), (101, 0), (100, 1)])
def test_a_pass_over_less_or_more_than_the_volume_is_not_verified(
    moved: int, unfinished: int
) -> None:
    """Blocks left out or done twice are told as an error."""
    failed = Pass("/dev/x", "fill", "write", 100, moved, 1.0, (99.0,), unfinished)
    with pytest.raises(CampaignError, match="not verified as warm"):
        verification_text([failed])
    assert "99 of" not in verification_text([Pass("/dev/x", "f", "read", 9, 9, 1.0, (9.0,), 0)])
