"""A storm on this machine, from the profile to the chart of two of them."""

from pathlib import Path

import volbench as api
from tests.command_line import Volbench, settings
from volbench.analyse.time.boot_storm import storms

SMALL = settings(
    *("size=4m", "vm.boot.runtime=1s", "vm.after.runtime=1s", "stagger=500ms", "sample=250ms")
)
PNG = b"\x89PNG"


def test_storms_are_run_and_drawn_side_by_side(
    scratch: Path, tmp_path: Path, volbench: Volbench
) -> None:
    """Clients start one after another on files of their own, and two campaigns make one chart."""
    for name, clients in (("one/storm", 3), ("two/storm", 2)):
        (tmp_path / name).parent.mkdir()
        more = settings(f"clients={clients}", "direct=0")
        done = volbench("run", "boot-storm", "--on", scratch, *SMALL, *more, "--output", name)
        assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == []
    campaign = api.open_campaign(tmp_path / "one/storm")
    (storm,) = storms({name: campaign.frame(name) for name in ("summary", "series", "device")})
    assert [client.name for client in storm.clients] == ["c01", "c02", "c03"]
    starts = [client.start_s for client in storm.clients]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert storm.read_iops.sum() > 0
    assert storm.write_iops.sum() > 0
    drawn = volbench(
        *("plot", "storm", "one/storm", "two/storm", "--format", "png"),
        *("--output", "both.png", "--csv", "both.csv"),
    )
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "both.png").read_bytes().startswith(PNG)
    assert (tmp_path / "both.csv").exists()
    shown = volbench("plot", "storm", "two/storm", "--output", "-")
    assert shown.stdout.startswith("<?xml")
