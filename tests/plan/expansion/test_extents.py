"""Extents cover a volume exactly once, whatever its size, and profiles read back as written."""

import pytest

from tests.plan.loading import load
from volbench.errors import InputError, ProfileError
from volbench.model.campaign.planned_run import VolumeKind
from volbench.model.profile.profile_model import Job, Phase
from volbench.model.profile.profile_settings import Warming, WarmingMode
from volbench.plan.expansion.extents import Basis, cut, cut_used, touches, usual_count

MIB = 1 << 20
DEVICE = VolumeKind.DEVICE


@pytest.mark.parametrize("size", [1, 300, 4096, 4097, MIB, MIB + 512, 33 * MIB, 10**9 + 7, 1 << 40])
@pytest.mark.parametrize("numjobs", [1, 3, 32])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_extents_cover_the_volume_once(size: int, numjobs: int, count: int) -> None:
    """Each piece begins where the last one ended, and every job does whole blocks."""
    at = 0
    for piece in cut(size, block_bytes=MIB, numjobs=numjobs, count=count):
        assert piece.offset_bytes == at
        assert piece.size_bytes > 0
        assert piece.size_bytes % (piece.block_bytes * piece.numjobs) == 0
        assert piece.numjobs <= numjobs
        at += piece.size_bytes
    assert at == size


def test_extents_are_neither_small_nor_many() -> None:
    """One for 16 GiB, at least 64 MiB each; the rest in whole pages; 64 blocks are read back."""
    counts = {63: 1, 128: 2, 1024: 16, 1024**2: 64}
    assert {size: usual_count(size * MIB) for size in counts} == counts
    rest = [piece.size_bytes for piece in cut(MIB + 3 * 4096 + 512, block_bytes=MIB, numjobs=1)]
    assert rest == [MIB, 3 * 4096, 512]
    job = Job(name="w", phase=Phase.WARMUP, warming=Warming(mode=WarmingMode.WRITE))
    *_, sample = touches(job, {}, size_bytes=1 << 30, kind=DEVICE)
    assert sample.section.options["io_size"] == str(64 * MIB)


@pytest.mark.parametrize("ranges", [[(0, 1)], [(0, MIB), (5 * MIB, 6 * MIB)], [(MIB, 1 << 40)]])
@pytest.mark.parametrize("block", [512, MIB, 3 * MIB])
def test_used_blocks_are_covered_once(ranges: list[tuple[int, int]], block: int) -> None:
    """In order, as far as the volume reaches, by one job each; the first extents are small."""
    pieces = [*cut_used(ranges, size_bytes=1 << 39, block_bytes=block)]
    touched = [(each.offset_bytes, each.offset_bytes + each.size_bytes) for each in pieces]
    inner = {end for _, end in touched} & {first for first, _ in touched}
    places = [at for part in touched for at in part if at not in inner]
    assert places == [at for first, end in ranges for at in (first, min(end, 1 << 39))]
    assert {each.numjobs for each in pieces} == {1}
    assert len(pieces) < 100
    assert all(each.size_bytes <= 256 * MIB for each in pieces[:8])
    job = Job(name="f", phase=Phase.WARMUP, warming=Warming(mode=WarmingMode.READ_WRITTEN))
    with pytest.raises(InputError, match="the volume holds no data"):
        list(touches(job, {}, size_bytes=MIB, kind=DEVICE, basis=Basis(MIB, [])))


@pytest.mark.parametrize("mode", list(WarmingMode))
def test_only_writing_modes_write(mode: WarmingMode) -> None:
    """Reading never plans a write, and never a check of what nobody wrote."""
    job = Job(name="f", phase=Phase.WARMUP, warming=Warming(mode=mode))
    planned = list(touches(job, {}, size_bytes=5 * MIB, kind=VolumeKind.DEVICE))
    newer = touches(job, {}, size_bytes=5 * MIB, kind=DEVICE, basis=Basis(has_sprandom=True))
    assert any("sprandom" in touch.section.options for touch in newer) == ("random" in mode)
    patterns = {touch.section.options["rw"] for touch in planned}
    reads = {WarmingMode.READ, WarmingMode.READ_WRITTEN}
    assert bool(patterns & {"write", "randwrite"}) == (mode not in reads)
    assert ("randread" in patterns) == (mode in {WarmingMode.WRITE, WarmingMode.WRITE_READ})


TEXT = """name: p
phases:
  warmup:
    fill: {warming: {mode: write, extents: 5}, bs: 64k}
jobs:
  read: {rw: read, size: 1m}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mode: write, ", "", "mode: is missing"),
        ("extents: 5", "extents: -1", "at least 0"),
        ("bs: 64k", "rw: read", "sets rw itself"),
        ("bs: 64k", "bs: 1000", "multiple of 512"),
        ("bs: 64k", "sections: {a: {}}", "only a job without sections"),
        ("  warmup:", "  measured:", "preparation, not measurement"),
    ],
)
def test_invalid_warm_ups_are_reported(old: str, new: str, words: str) -> None:
    """Mistakes are found before anything is touched."""
    text = TEXT.replace(old, new)
    if "measured" in new:
        text = text.partition("jobs:\n")[0]
    with pytest.raises(ProfileError, match=words):
        load(text)
