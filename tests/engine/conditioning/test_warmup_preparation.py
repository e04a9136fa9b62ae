"""How many numjobs a warm-up gets, from what its extents did before."""

import pytest

from volbench.engine.conditioning.volume_warmup import Pass, choose_numjobs, verification_text
from volbench.errors import CampaignError


@pytest.mark.parametrize(
    ("rates", "numjobs"),
    [
        ([], 1),
        ([10], 2),
        ([10, 20], 4),
        ([10, 20, 21], 2),
        ([10, 20, 21, 90], 2),
        ([10, 10.5], 1),
        ([10, 20, 40, 80], 8),
        ([10, 20, 40, 80, 80, 80], 8),
    ],
)
def test_numjobs_double_until_that_gains_too_little(rates: list[float], numjobs: int) -> None:
    """Twice as many have to be a tenth faster; then the number stays."""
    assert choose_numjobs(rates, limit=8) == numjobs


def test_a_volume_too_small_to_divide_gets_one_job() -> None:
    """There is no rung above what an extent can be divided among."""
    assert choose_numjobs([1, 2, 3], limit=1) == 1


@pytest.mark.parametrize(("moved", "unfinished"), [(99, 0), (101, 0), (100, 1)])
def test_a_pass_over_less_or_more_than_the_volume_is_not_verified(
    moved: int, unfinished: int
) -> None:
    """Blocks left out or done twice are told as an error."""
    failed = Pass("/dev/x", "fill", "write", 100, moved, 1.0, (99.0,), unfinished)
    with pytest.raises(CampaignError, match="not verified as warm"):
        verification_text([failed])
    assert "99 of" not in verification_text([Pass("/dev/x", "f", "read", 9, 9, 1.0, (9.0,), 0)])
