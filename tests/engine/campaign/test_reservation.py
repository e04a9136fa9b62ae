"""Hosts that hang while they are reserved or released, outside of any run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.campaign.local_runs import stored
from tests.planned import a_folder, planned_campaign, planned_run
from tests.waiting import until
from volbench.engine.campaign import campaign_engine, campaign_state
from volbench.engine.campaign.campaign_engine import run_campaign
from volbench.engine.campaign.campaign_state import Settings
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import CampaignError, ConnectError
from volbench.execute.local import LocalExecutor
from volbench.model.campaign.event import Event, HostSilent, Notice
from volbench.model.campaign.host import Host, Policy

HUNG_S = 3600.0
"""Longer than any timeout here: the host does not come back."""


class Hung(LocalExecutor):
    """A host that has not answered for long, and repeats a request until it is given up."""

    silent_s = HUNG_S

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.unless: Callable[[], bool] = lambda: False
        self.is_reported: Callable[[], bool] = lambda: True

    def wait_when_unreachable(
        self, *, unless: Callable[[], bool], is_hung: Callable[[], bool]
    ) -> None:
        """Note when to give up."""
        self.unless = lambda: unless() or is_hung()

    def hang(self) -> None:
        """Repeat a request."""
        until(lambda: self.unless() and self.is_reported())
        raise ConnectError(f"{self.host} does not answer", hint="")


@pytest.mark.parametrize("policy", [Policy.ALL, Policy.BEST_EFFORT])
@pytest.mark.parametrize("phase", ["reserve_host", "_release"])
def test_hung_host_is_waited_for_as_long_as_a_silent_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, phase: str, policy: Policy
) -> None:
    """A host that is frozen outside of a run does not hold the campaign for ten minutes.

    Where the policy makes do without it, the campaign goes on and says what to do.
    """
    hung = Hung("away")

    def work(target: object, *_others: object) -> dict[str, list[str]]:
        if getattr(target, "executor", target) is hung:
            hung.hang()
        return {}

    monkeypatch.setattr(campaign_engine, phase, work)
    monkeypatch.setattr(campaign_state, "_LOOK_S", 0.01)
    monkeypatch.setattr(campaign_state, "SILENT_S", 0.1)
    events: list[Event] = []
    hung.is_reported = lambda: any(isinstance(event, HostSilent) for event in events)
    names = ["near", "away"]
    hosts = [Host(name=name, address="192.0.2.1") for name in names]
    runs = [planned_run(a_folder(), id=name, host=name) for name in names]
    campaign = planned_campaign(*runs, hosts=tuple(hosts), policy=policy)
    layout = stored(tmp_path / "c", campaign)
    connected = [
        ConnectedHost(host, executor)
        for host, executor in zip(hosts, [LocalExecutor("near"), hung], strict=True)
    ]
    monkeypatch.setattr(campaign_engine, "_run_all", lambda *_: None)
    is_needed = policy is Policy.ALL
    error, words = (ConnectError, "does not answer") if is_needed else (CampaignError, "unfinished")
    with pytest.raises(error, match=words):
        run_campaign(
            layout,
            campaign,
            connected,
            settings=Settings(ready_timeout_s=0.5),
            listener=events.append,
            stop=StopRequest(),
        )
    # On a busy machine it may answer something after 0.1 s, and fall silent once more.
    assert {event.host for event in events if isinstance(event, HostSilent)} == {"away"}
    notices = [event.message for event in events if isinstance(event, Notice)]
    assert any("away does not answer" in message for message in notices) != is_needed
