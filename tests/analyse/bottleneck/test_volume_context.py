"""What a volume holds: what earlier runs wrote to the range of a run, and data kept for less."""

from collections.abc import Mapping

import pytest

from tests.analyse.findings.conftest import BLOCK, IOPS, a_run, a_view, device_samples
from tests.analyse.runs_at_levels import level, ran
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.bottleneck.volume_context import Earlier
from volbench.model.results.finding import Cause

GIB = 2**30
RATE = GIB / 60 / 4096
"""IOPS of 4k that move 1 GiB in a minute."""


def written(rate: float, **options: str) -> Earlier:
    """Return what is known after a run that writes for a minute."""
    return Earlier().then(ran(level(rate), {"rw": "write", **options}))


@pytest.mark.parametrize(
    ("options", "is_filled"),
    [
        ({"size": f"{GIB}"}, True),
        ({"size": f"{GIB // 4}", "offset": f"{GIB // 2}"}, True),
        ({"size": f"{GIB // 2}", "offset": f"{3 * GIB // 4}"}, False),
        ({"size": f"{2 * GIB}"}, False),
        ({"size": f"{GIB}", "filename": "/dev/other"}, False),
        ({"size": None}, False),
    ],
)
def test_a_range_within_a_filled_range_is_filled(
    options: dict[str, str | None], *, is_filled: bool
) -> None:
    """A part of a written range is written; what reaches beyond it is not known to be."""
    earlier = written(1.01 * RATE, size=f"{GIB}")
    assert earlier.has_filled(ran(level(1000), options)) is is_filled


def test_a_partly_written_range_is_not_filled() -> None:
    """Half as many bytes as it has: which of its blocks are cold is unknown."""
    earlier = written(RATE / 2, size=f"{GIB}")
    assert not earlier.has_filled(ran(level(1000), {"size": f"{GIB // 4}"}))
    again = earlier.then(ran(level(1.02 * RATE / 2), {"rw": "write", "size": f"{GIB}"}))
    assert again.has_filled(ran(level(1000), {"size": f"{GIB // 4}"}))


def test_a_size_is_limited_to_the_volume() -> None:
    """Behind an offset in the middle, all of a volume is its second half."""
    half = written(33 * RATE, size="50%", offset="50%")
    assert half.has_filled(ran(level(1000), {"size": None, "offset": "50%"}))
    assert not half.has_filled(ran(level(1000), {"size": None}))


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
