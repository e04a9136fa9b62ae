"""Machine types: bundled limits, and the lower limit of volume and machine."""

import json
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.extensions.catalogue.typed_limits import limits_of
from volbench.errors import InputError
from volbench.extensions.catalogue.machine_types import (
    find_machine,
    machine_types,
    parse_machines,
    within_machine,
)
from volbench.model.profile.profile_settings import Limits

OWN = """\
provider: aws
checked: 2026-11-26
source: page
machines:
  m5d.large: {iops: 3600, bandwidth: 81.25MB/s, burst_iops: 16000}
"""


def test_bundled_machines_are_those_of_the_provider() -> None:
    """Numbers from the tables of Bv1 and Dsv5; every entry has a source."""
    small, large = find_machine("azure/Standard_B2s"), find_machine("azure/Standard_D16s_v5")
    assert (small.iops, small.bandwidth_bytes_per_s) == (1280, 15e6)
    assert (small.burst_iops, small.burst_bandwidth_bytes_per_s) == (4000, 100e6)
    assert (large.iops, large.bandwidth_bytes_per_s, large.burst_iops) == (25_600, 600e6, 40_000)
    assert all(machine.iops for machine in machine_types().values())


def test_the_lower_limit_of_volume_and_machine_applies() -> None:
    """A P30 on a B2s has the machine's limits and bursts; a P4 keeps its own."""
    large = limits_of("azure/P30").model_copy(update={"machine": "azure/Standard_B2s"})
    bound = within_machine(large)
    assert (bound.iops, bound.bandwidth_bytes_per_s) == (1280, 15e6)
    assert bound.machine_limits == ("iops", "bandwidth_bytes_per_s")
    assert (bound.burst_iops, bound.burst_ios) == (4000, (4000 - 1280) * 1800)
    own = limits_of("azure/P4")
    kept = within_machine(own.model_copy(update={"machine": "azure/Standard_D2s_v5"}))
    assert kept.machine_limits == ()
    of_machine = {"machine_iops": 3750, "machine_bandwidth_bytes_per_s": 85e6}
    assert kept == own.model_copy(update={"machine": "azure/Standard_D2s_v5", **of_machine})
    numbers = within_machine(Limits(iops=5000, machine="azure/Standard_D2s_v5"))
    assert numbers.machine_limits == ("iops", "bandwidth_bytes_per_s")
    assert numbers.burst_iops == 5000


def test_a_file_without_limits_is_refused_with_its_place() -> None:
    """A machine needs one limit at least."""
    text = "provider: x\nchecked: 2026-01-01\nsource: page\nmachines:\n  small: {burst_iops: 5}\n"
    with pytest.raises(InputError, match=r"own.yaml:5:3: .*has no limit"):
        parse_machines(text, path="own.yaml")


@pytest.mark.slow
def test_a_plan_has_the_limits_of_its_machine(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """In a profile and in one text; a type in ./machine-types is known, an unknown one is not."""
    (tmp_path / "machine-types").mkdir()
    (tmp_path / "machine-types/aws.yaml").write_text(OWN, encoding="utf-8")
    listed = volbench("audit", "--list", "aws/m5d.large", "--json")
    assert {row["machine"]: row["iops"] for row in json.loads(listed.stdout)}[
        "aws/m5d.large"
    ] == 3600
    limits = "limits=aws/gp3 size=500g iops=6000 machine=aws/m5d.large"
    arguments = ("run", "quick", "--on", scratch, "--set", "runtime=1s", "--set", "size=1m")
    done = volbench(*arguments, "--set", limits, "--output", "out", "--yes")
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "out/campaign.json").read_text("utf-8"))
    kept = json.dumps(plan)
    assert '"machine": "aws/m5d.large"' in kept
    assert '"machine_limits": ["iops", "bandwidth_bytes_per_s"]' in kept
    wrong = volbench(*arguments, "--set", "limits=azure/P15 machine=azure/Standard_B2", "--dry-run")
    assert wrong.returncode == 2
    assert "there is no machine type 'azure/Standard_B2'" in wrong.stderr
    assert "did you mean" in wrong.stderr
