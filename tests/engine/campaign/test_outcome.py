"""What the end of a campaign says about runs that did not finish."""

from pathlib import Path

import pytest

from volbench.engine.campaign.campaign_engine import check_finished
from volbench.errors import CampaignError
from volbench.model.campaign.event import CampaignEnded


@pytest.mark.parametrize(
    ("failed", "left", "message"),
    [
        (("a",), (), "1 of 4 runs failed"),
        ((), ("b", "c"), "2 of 4 runs unfinished"),
        (("a",), ("b",), "1 of 4 runs failed, 1 of 4 runs unfinished"),
    ],
)
def test_states_without_runs_are_not_mentioned(
    failed: tuple[str, ...], left: tuple[str, ...], message: str
) -> None:
    """Runs of a lost host have neither failed nor are they unstarted: they are left."""
    with pytest.raises(CampaignError) as caught:
        check_finished(CampaignEnded((), failed, left, ()), Path("c"), total=4)
    assert caught.value.message == message
    assert ("--retry-failed" in caught.value.hint) is bool(failed)


@pytest.mark.parametrize(("left", "hint"), [((), "run the campaign again"), (("b",), "resume c")])
def test_runs_whose_pods_are_removed_are_not_resumed(left: tuple[str, ...], hint: str) -> None:
    """Pods stay only while runs are left to do in them."""
    end = CampaignEnded((), ("a",), left, ())
    with pytest.raises(CampaignError) as caught:
        check_finished(end, Path("c"), total=4, are_hosts_kept=False)
    assert hint in caught.value.hint
