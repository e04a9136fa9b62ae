"""Warm-ups of simulated volumes in virtual time; `test_warmup.py` has those of real fio."""

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.engine.campaign.virtual_runs import virtual_fio
from tests.extensions.lab.silent_export import silent_export
from volbench.engine.conditioning.volume_warmup import Pass, verification_text
from volbench.errors import CampaignError
from volbench.extensions.lab.scenario import load_scenario

MIB = 1 << 20
URI = silent_export()
SERVICE = "service: {read: 40ms, write: 40ms, slots: 8}"
SLOW = load_scenario(
    f"name: slow\nsize: 8m\nblock: 64k\nrestored: true\n{SERVICE}\n", path="made.yaml"
)
PROFILE = """name: p
sample: 0
device_sample: 0
defaults: {ioengine: nbd}
phases:
  warmup:
    fill: {warming: {mode: write, extents: 6}, numjobs: 1, iodepth: 1, size: 6m}
jobs:
  after: {rw: randread, bs: 4k, size: 64k}
"""


@pytest.mark.slow
def test_an_interrupted_warm_up_continues_after_the_last_extent(
    tmp_path: Path, volbench: Volbench
) -> None:
    """What was finished is not done again, and the whole is proven in the end."""
    profile, out = tmp_path / "p.yaml", tmp_path / "c"
    profile.write_text(PROFILE)
    with virtual_fio(SLOW, interrupted="003-"):
        done = volbench("run", profile, "--on", URI, "--allow-destroy", URI, "--output", out)
    assert done.returncode == 130, done.stderr
    with virtual_fio(SLOW):
        done = volbench("resume", out)
    assert done.returncode == 0, done.stderr
    assert f"write: {6 * MIB} of {6 * MIB} bytes" in done.stdout
    journal = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    ended = [line["run"] for line in journal if line.get("state") == "finished"]
    assert len(ended) == len(set(ended)) == 8
    assert sorted(path.parent.name for path in out.glob("runs/*/attempts")) == [
        "003-fill-write-3of6-r1"
    ]


@pytest.mark.parametrize(("moved", "unfinished"), [(99, 0), (101, 0), (100, 1)])
def test_a_pass_over_less_or_more_than_the_volume_is_not_verified(
    moved: int, unfinished: int
) -> None:
    """Blocks left out or done twice are told as an error."""
    failed = Pass("/dev/x", "fill", "write", 100, moved, 1.0, (99.0,), unfinished)
    with pytest.raises(CampaignError, match="not verified as warm"):
        verification_text([failed])
    assert "99 of" not in verification_text([Pass("/dev/x", "f", "read", 9, 9, 1.0, (9.0,), 0)])
