"""Ranges in names of hosts."""

import pytest

from volbench.errors import InputError
from volbench.plan.inventory.host_names import expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("vm", ["vm"]),
        ("vm[8-11]", ["vm8", "vm9", "vm10", "vm11"]),
        ("vm[08-11].x", ["vm08.x", "vm09.x", "vm10.x", "vm11.x"]),
        ("[a-c]", ["a", "b", "c"]),
        ("vm[01-02,07]", ["vm01", "vm02", "vm07"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("vm[5-5]", ["vm5"]),
    ],
)
def test_ranges_are_expanded(text: str, names: list[str]) -> None:
    """From first to last, with as many digits as were written."""
    assert list(expand(text).texts) == names


@pytest.mark.parametrize(
    "text",
    [
        *("vm[", "vm]", "vm[]", "vm[1-]", "vm[-2]", "vm[1:2]", "vm[1-b]", "vm[2-1]", "vm[01-2]"),
        *("vm[1-2-3]", "vm[1,1]", "vm[1-3,2]", "vm[[1-2]]", "vm[aa-bb]", "vm[1-100000]"),
    ],
)
def test_invalid_ranges_are_refused(text: str) -> None:
    """A bracket is never taken as a part of a name."""
    with pytest.raises(InputError):
        expand(text)
