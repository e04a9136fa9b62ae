"""Rates of data that storage keeps for less have that cause."""

from collections.abc import Mapping

import pytest

from tests.analyse.findings.conftest import BLOCK, IOPS, a_run, a_view, device_samples
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.model.results.finding import Cause


@pytest.mark.parametrize(
    ("options", "mount", "stored", "reduced"),
    [
        ({"zero_buffers": "1"}, "", 0.05, 1),
        ({"buffer_compress_percentage": "80"}, "", 0.3, 1),
        ({"dedupe_percentage": "50"}, "", 0.5, 1),
        ({"refill_buffers": None}, "", 0.1, 1),
        ({}, "rw,compress=zstd:3", 0.5, 1),
        ({}, "rw", 0.5, 0),
        ({"zero_buffers": "1"}, "", 1.0, 0),
    ],
)
def test_fewer_bytes_stored_than_written_show_data_reduction(
    options: Mapping[str, str | None], mount: str, stored: float, reduced: int
) -> None:
    """It takes a device that wrote less, and data or a filesystem that explains it."""
    run = a_run(options)
    device = device_samples(run, write_bw_bytes_per_s=stored * IOPS * BLOCK)
    view = a_view(run, device=device)
    assert view.volume is not None
    facts = view.volume.model_copy(update={"mount_options": mount})
    view = a_view(run, device=device, volume=facts)
    first, *_ = Context((view,)).explanations(view)
    assert (first.cause is Cause.REDUCTION) == bool(reduced)
    if reduced:
        assert not first.is_certain
        assert any("the device wrote" in words for words in first.speaks_for)
