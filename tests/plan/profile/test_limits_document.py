"""Limits by the type of a volume: in profiles, in inventories, by --set, and in the plan."""

from pathlib import Path

import pytest

from tests.extensions.catalogue.typed_limits import limits_of
from tests.plan.loading import load
from volbench.errors import InputError, InventoryError, ProfileError
from volbench.model.campaign.host import LOCAL, Host
from volbench.model.campaign.planned_run import Campaign, DevicePin, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.model.profile.profile_settings import Limits
from volbench.plan.expansion.expand import Terms, expand
from volbench.plan.expansion.multi_client import Client, expand_clients
from volbench.plan.inventory.load_inventory import load_inventory
from volbench.plan.profile.load_profile import dump_profile

GIB = 1 << 30


def profile(limits: str, *settings: str) -> Profile:
    """Return a profile that reads and writes, with some declared limits."""
    text = f"name: p\nlimits: {limits}\njobs:\n  r: {{rw: randread}}\n  w: {{rw: randwrite}}\n"
    return load(text, *settings)


def planned(wanted: Profile, *, size_bytes: int | None, host: Host | None = None) -> Campaign:
    """Return the plan on a device of a size, or on a directory."""
    pin = DevicePin(path="/dev/sdz", major=8, minor=1, size_bytes=size_bytes or 1)
    volume = (
        Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
        if size_bytes is None
        else Volume(role="data", kind=VolumeKind.DEVICE, target="/dev/sdz", pin=pin)
    )
    client = Client(host or Host(name=LOCAL), 0, {"data": volume})
    return expand_clients([wanted], [client], Terms(name="c"))


def test_a_profile_names_a_volume_type() -> None:
    """The name alone gives caps and credits, for all roles or for one."""
    wanted = limits_of("azure/P15")
    assert profile("azure/P15").limits == {"*": wanted}
    assert profile("{data: azure/P15}").limits == {"data": wanted}
    assert profile("{type: azure/P15}").limits == {"*": wanted}
    assert profile("{data: {type: azure/P15}, '*': azure/P4}").limits["data"] == wanted


@pytest.mark.parametrize(
    "limits",
    [
        "aws/gp3 size=500g iops=6000 bandwidth=250MB/s",
        "{type: aws/gp3, size: 500g, iops: 6000, bandwidth: 250MB/s}",
    ],
)
def test_billed_quantities_of_a_volume_type_are_read(limits: str) -> None:
    """Size, IOPS and bandwidth stand in the text or beside the type."""
    found = profile(limits).limits["*"]
    assert (found.iops, found.bandwidth_bytes_per_s, found.name) == (6000, 250e6, "aws/gp3")


def test_the_size_is_read_from_the_device() -> None:
    """A type that depends on the size waits for the volume."""
    wanted = profile("aws/gp2")
    assert wanted.limits["*"].wanted is not None
    limits = planned(wanted, size_bytes=100 * GIB).runs[0].limits
    assert limits == limits_of("aws/gp2", size_bytes=100 * GIB)
    assert limits.wanted is None


def test_reads_and_writes_get_their_own_limits() -> None:
    """Where a provider tells them apart, so does the plan."""
    reads, writes = planned(profile("gcp/pd-standard"), size_bytes=1024 * GIB).runs
    assert (reads.limits.iops, writes.limits.iops) == (768, 1536)


def test_a_directory_has_no_size() -> None:
    """Nothing is guessed: the user is told how to write it; an example plan goes on."""
    wanted = profile("aws/gp2")
    with pytest.raises(InputError, match="not a device that reports its size") as caught:
        planned(wanted, size_bytes=None)
    assert 'with the type: "aws/gp2 size=100g"' in caught.value.hint
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target=".")
    shown = expand([wanted], {"data": volume}, Terms(name="c")).runs[0]
    assert shown.limits.iops is None


def test_a_device_that_is_too_large_for_its_type() -> None:
    """A type is refused on a volume that can't be one."""
    with pytest.raises(
        InputError, match="a volume of 20 TiB cannot be of type aws/gp2: sizes are 1 GiB to 16 TiB"
    ):
        planned(profile("aws/gp2"), size_bytes=20 << 40)


def test_the_inventory_names_a_type(tmp_path: Path) -> None:
    """A host's type goes before the profile's, and its own device tells the size."""
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "hosts:\n  vm1: {address: 10.0.0.1, limits: azure/P15}\n"
        "  vm2: {address: 10.0.0.2, limits: {data: aws/gp2}}\n",
        encoding="utf-8",
    )
    first, second = load_inventory(file).hosts
    assert first.limits == {"*": limits_of("azure/P15")}
    runs = planned(profile("azure/P4"), size_bytes=200 * GIB, host=second).runs
    assert runs[0].limits == limits_of("aws/gp2", size_bytes=200 * GIB)
    file.write_text("hosts:\n  vm1:\n    limits: azure/P16\n", encoding="utf-8")
    with pytest.raises(InventoryError, match=r"hosts.yaml:3:13: .*no volume type 'azure/P16'"):
        load_inventory(file)


def test_set_names_a_type() -> None:
    """--set takes a type for one role or for all, with what is bought of it."""
    assert profile("{iops: 5}", "limits.data=azure/P15").limits["data"] == limits_of("azure/P15")
    assert profile("{data: azure/P4}", "limits=azure/P15").limits == {"*": limits_of("azure/P15")}
    found = profile("{iops: 5}", "limits.data=aws/gp3 size=1t iops=9000").limits["data"]
    assert (found.iops, found.bandwidth_bytes_per_s) == (9000, 125 << 20)


def test_set_changes_what_is_billed() -> None:
    """A number set beside a type that waits for its size is what is bought of it."""
    found = planned(profile("aws/gp3", "limits.iops=9000"), size_bytes=100 * GIB).runs[0].limits
    assert (found.iops, found.name) == (9000, "aws/gp3")
    with pytest.raises(InputError, match="burst_iops: follows from the type aws/gp2"):
        profile("aws/gp2", "limits.burst_iops=9000")


@pytest.mark.parametrize(
    ("limits", "place", "message"),
    [
        ("azure/P16", "p.yaml:2:9: limits", "no volume type 'azure/P16'"),
        ("{type: azure/P15, iops: 5}", "p.yaml:2:9: limits", "has no provisioned IOPS"),
        ("{type: aws/gp2, burst_iops: 5}", "p.yaml:2:25: limits.burst_iops", "follows from"),
        ("{type: aws/gp2, size: 0}", "p.yaml:2:31: limits.size", "above 0"),
        ("aws/gp2 100g", "p.yaml:2:9: limits", "'100g' is not a property of a volume"),
        ("fast", "p.yaml:2:9: limits", "is not a volume type"),
        ("{dta: azure/P15}", "p.yaml:2:10: limits.dta", "no job uses the role"),
    ],
)
def test_problems_are_reported_with_their_position(limits: str, place: str, message: str) -> None:
    """Each defect is reported with file, line, column and key."""
    with pytest.raises(ProfileError) as caught:
        profile(limits)
    (problem,) = caught.value.problems
    assert str(problem).startswith(place)
    assert message in str(problem)


@pytest.mark.parametrize(
    "limits", ["azure/P15", "aws/gp2", "{type: aws/gp3, iops: 9000}", "{data: gcp/pd-standard}"]
)
def test_a_dumped_profile_reads_back(limits: str) -> None:
    """What a campaign keeps of its profile says the same."""
    wanted = profile(limits)
    assert load(dump_profile(wanted)) == wanted


def test_own_limits_may_have_a_name() -> None:
    """Numbers by hand can be called like a type, so that prices are found."""
    assert profile("{name: aws/gp2, iops: 5k}").limits["*"] == Limits(name="aws/gp2", iops=5000)
