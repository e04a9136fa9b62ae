"""``--limit``: groups, hosts, ranges, patterns."""

import pytest

from tests.plan.inventory.reading import FILES
from volbench.errors import InventoryError
from volbench.model.campaign.host import Inventory
from volbench.plan.inventory.host_names import select
from volbench.plan.inventory.load_inventory import load_inventory


@pytest.fixture(scope="module")
def fleet() -> Inventory:
    """Return an inventory of 39 hosts."""
    return load_inventory(FILES / "fleet.yaml")


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        (["vm01"], ["vm01"]),
        (["fast"], ["vm01"]),
        (["vm[03-04]", "local"], ["vm03", "vm04", "local"]),
        (["vm0?,r1*"], [f"vm0{n}" for n in range(1, 10)] + ["r1n08", "r1n09", "r1n10"]),
        (["alias", "vm02"], ["vm02", "alias"]),
        (["vm[01,03]"], ["vm01", "vm03"]),
        (["*ast"], ["vm01"]),
    ],
)
def test_limits_select_hosts(fleet: Inventory, limits: list[str], names: list[str]) -> None:
    """In the order of the inventory, each once."""
    assert [host.name for host in select(fleet, limits).hosts] == names


def test_no_limit_is_every_host(fleet: Inventory) -> None:
    """So is the group of all."""
    assert select(fleet, []) == fleet
    assert select(fleet, ["all"]).hosts == fleet.hosts


def test_groups_shrink_with_their_hosts(fleet: Inventory) -> None:
    """A group without a host left is gone."""
    assert select(fleet, ["vm01", "vm02"]).groups == {"fast": ("vm01",), "cloud": ("vm01", "vm02")}


@pytest.mark.parametrize(
    ("limit", "words", "hint"),
    [
        ("vm1", "matches no host", "did you mean"),
        ("x*", "matches no host", "there are fast"),
        ("nobody", "matches no host", ""),
        ("vm[29-31]", "there is no vm31", "range"),
        ("", "matches no host", "commas"),
    ],
)
def test_a_limit_without_a_match(fleet: Inventory, limit: str, words: str, hint: str) -> None:
    """It is an error, since fewer hosts than were meant would be measured."""
    with pytest.raises(InventoryError) as caught:
        select(fleet, ["vm01", limit])
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_without_an_inventory_there_is_no_host_to_name() -> None:
    """A campaign on this machine has none to choose from: the hint lists nothing."""
    with pytest.raises(InventoryError) as caught:
        select(Inventory(hosts=()), ["vm1"])
    assert caught.value.hint == "everything runs on this machine: leave out --limit"
