"""Verification of warm-ups; `test_warmup.py` has warm-ups by real fio."""

from pathlib import Path

import pytest

from tests.planned import a_folder, planned_campaign, planned_run
from volbench.engine.conditioning.volume_warmup import Outcomes, Pass, passes_of, verification_text
from volbench.errors import CampaignError
from volbench.model.campaign.planned_run import Extent
from volbench.store.layout import Layout


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


def test_a_pass_is_of_one_host(tmp_path: Path) -> None:
    """Hosts warm their volumes at the same time: their extents alternate in the plan."""
    each = {"extent": Extent(offset_bytes=0, size_bytes=4, volume_bytes=8, direction="read")}
    places = [(number, host) for number in "12" for host in ("a", "b")]
    runs = [planned_run(a_folder("/d"), id=n + host, host=host, **each) for n, host in places]
    passes = passes_of(Outcomes(Layout(tmp_path)), planned_campaign(*runs), is_done=lambda _: False)
    assert [(each.volume[:4], each.unfinished) for each in passes] == [("a:/d", 2), ("b:/d", 2)]
