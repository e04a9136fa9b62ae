"""The interactive view of the device: what it draws is what the frame holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import volbench
from tests.browser.made_up import Size, make_campaign
from volbench.present.figures.devicepanels import PANELS
from volbench.present.report.plotdevice import device_plots
from volbench.present.report.plots import Plot

SIZE = Size(jobs=2, repeats=1, seconds=20)


@pytest.fixture(scope="module", name="campaign")
def _campaign(tmp_path_factory: pytest.TempPathFactory) -> volbench.CampaignData:
    """Return two Runs with samples of a device."""
    return volbench.open_campaign(make_campaign(tmp_path_factory.mktemp("c"), size=SIZE).root)


@pytest.fixture(scope="module", name="plots")
def _plots(campaign: volbench.CampaignData) -> list[Plot]:
    """Return their charts."""
    return device_plots("Device", {n: campaign.frame(n) for n in ("summary", "series", "device")})


def models(node: object) -> Iterator[dict[str, Any]]:
    """Yield every model of a bokeh document."""
    if isinstance(node, dict):
        if "name" in node and "attributes" in node:
            yield node
        for part in node.values():
            yield from models(part)
    elif isinstance(node, list):
        for part in node:
            yield from models(part)


def test_a_chart_a_run_with_every_panel(plots: list[Plot]) -> None:
    """Each Run is told in words, and its panels share one axis of time."""
    assert len(plots) == 2
    for plot in plots:
        assert plot.kind == "device"
        assert "watched for 20 s" in plot.description
        drawn = [one for one in models(json.loads(plot.item)) if one["name"] == "Figure"]
        assert len(drawn) == len(PANELS)
        shared = {json.dumps(one["attributes"]["x_range"].get("id")) for one in drawn}
        assert len(shared) == 1


def test_every_series_can_be_switched(plots: list[Plot]) -> None:
    """The device's two directions, fio's own view, and what the host tells."""
    names = {toggle.name for toggle in plots[0].toggles}
    assert {"device: reads", "device: writes", "fio: reads and writes"} <= names
    assert {"iowait", "dirty", "in write-back"} <= names
    keys = [toggle.key for toggle in plots[0].toggles]
    assert len(set(keys)) == len(keys)
    for key in keys:
        assert json.dumps(key) in plots[0].item


def test_without_samples_there_is_no_chart(campaign: volbench.CampaignData) -> None:
    """A campaign that nobody watched has nothing to zoom into."""
    frames = {name: campaign.frame(name) for name in ("summary", "series", "device")}
    assert device_plots("Device", frames | {"device": frames["device"].head(0)}) == []
