"""Disks that are full, or fill up, under a campaign folder or under the volume."""

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.killed_campaigns import RUN_S, ShortCampaign, check_kept

_ROOM = "64m"
_OUTPUT_ERROR = 7


@contextmanager
def _small_disk(point: Path, size: str) -> Iterator[None]:
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", point], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", point], check=True)


def full_disk(chance: random.Random, folder: Path) -> int:
    """Run a campaign whose disk fills up, make room, and resume it."""
    if chance.random() < 0.6:
        return _full_results(chance, folder)
    return _full_volume(chance, folder)


def _full_results(chance: random.Random, folder: Path) -> int:
    small = folder / "small"
    campaign = ShortCampaign(folder, small / "c")
    campaign.prepare(chance, runs=3)
    with _small_disk(small, f"{chance.randint(8, 400)}k"):
        status, printed = campaign.call("run")
        assert status in {0, _OUTPUT_ERROR}, printed
        assert status == 0 or "No space left" in printed, printed
        campaign.check_clean()
        before = campaign.finished()
        subprocess.run(["mount", "-o", f"remount,size={_ROOM}", small], check=True)
        if not (campaign.out / "campaign.json").exists():
            return 1
        if status:
            status, printed = campaign.call("resume", "--retry-failed")
            assert status == 0, printed
        check_kept(before, campaign.finished())
        campaign.check_complete()
        campaign.check_clean()
    return 2


def _full_volume(chance: random.Random, folder: Path) -> int:
    """Measure a volume that another process fills up meanwhile, and again once there is room."""
    campaign = ShortCampaign(folder, folder / "c")
    campaign.prepare(chance, runs=3)
    with _small_disk(campaign.scratch, "96m"):
        process = campaign.start("run")
        time.sleep(chance.uniform(0, RUN_S))
        filler = campaign.scratch / "filler"
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], check=False, capture_output=True
        )
        printed, _ = process.communicate(timeout=120)
        assert "Traceback" not in printed, printed
        assert process.returncode in {0, 3, 9}, printed
        filler.unlink()
        campaign.check_clean()
        if not (campaign.out / "campaign.json").exists():
            return 1
        before = campaign.finished()
        if process.returncode:
            status, printed = campaign.call("resume", "--retry-failed")
            assert status == 0, printed
        check_kept(before, campaign.finished())
        assert set(campaign.states()) == {"finished"}
        campaign.check_clean()
    return 2
