"""Every bundled type against the limits its provider documents."""

import re
from pathlib import Path

import pytest

from tests.extensions.catalogue.typed_limits import limits_of
from volbench.errors import InputError
from volbench.extensions.catalogue.volume_types import bundled_types
from volbench.units import parse_rate, parse_size

CASES = Path(__file__).with_name("documented_limits.txt").read_text(encoding="utf-8")
ROWS = [
    [name, size, *limits]
    for names, sizes, *limits in map(str.split, re.findall(r"^\w.*", CASES, re.MULTILINE))
    for name, size in zip(names.split("+"), sizes.split("+"), strict=True)
]


def number(text: str) -> float | None:
    """Return a rate or a plain number of the table; None for a dash."""
    if text == "-":
        return None
    return parse_rate(text) if text.endswith("/s") else float(text)


@pytest.mark.parametrize("row", ROWS, ids=[" ".join(row[:2]) for row in ROWS])
def test_limits_equal_those_of_the_provider(row: list[str]) -> None:
    """At the smallest, the largest and documented sizes, limits are the documented ones."""
    name, size, iops, bandwidth = row[:4]
    found = limits_of(
        name,
        size_bytes=parse_size(size),
        iops=number(iops),
        bandwidth_bytes_per_s=number(bandwidth),
    )
    reported = (
        found.iops,
        found.bandwidth_bytes_per_s,
        found.burst_iops,
        found.burst_ios,
        found.burst_bandwidth_bytes_per_s,
        found.burst_bytes,
    )
    for value, text in zip(reported, row[4:], strict=True):
        wanted = number(text)
        assert value == (None if wanted is None else pytest.approx(wanted, rel=1e-6)), text


def test_every_bundled_type_is_in_the_table() -> None:
    """No type was added without a comparison with its page."""
    assert {row[0] for row in ROWS} == set(bundled_types())


@pytest.mark.parametrize("name", bundled_types())
def test_sizes_end_where_the_table_does(name: str) -> None:
    """The largest size is allowed, as the table shows, and one more GiB is not."""
    kind = bundled_types()[name]
    most = kind.max_bytes or kind.tiers[-1].size_bytes
    billed = 200_000.0 if name == "gcp/hyperdisk-extreme" else 10_000.0
    iops = billed if kind.buys_iops else None
    usual = "9GiB/s" if name == "gcp/hyperdisk-ml" else "500MiB/s"
    rate = parse_rate(usual) if kind.buys_bandwidth else None
    assert limits_of(name, size_bytes=most, iops=iops, bandwidth_bytes_per_s=rate).name == name
    with pytest.raises(InputError, match=f" cannot be of type {name}: "):
        limits_of(name, size_bytes=most + (1 << 30), iops=iops, bandwidth_bytes_per_s=rate)


@pytest.mark.parametrize("name", bundled_types())
def test_every_type_can_be_checked(name: str) -> None:
    """A type says when it was compared, and with which page of its provider."""
    kind = bundled_types()[name]
    assert kind.checked >= "2026-11-21"
    assert kind.source.title
    assert kind.source.url.startswith("https://")
    assert kind.title


def test_reads_and_writes_have_separate_limits() -> None:
    """A standard Persistent Disk writes more often than it reads, and less in bytes."""
    size = 64 << 40
    reads = limits_of("gcp/pd-standard", size_bytes=size, writes=False)
    writes = limits_of("gcp/pd-standard", size_bytes=size, writes=True)
    assert (reads.iops, reads.bandwidth_bytes_per_s) == (7500, 1200 << 20)
    assert (writes.iops, writes.bandwidth_bytes_per_s) == (15_000, 400 << 20)


def test_p15_needs_no_size() -> None:
    """A type of one size tells everything: burst credits last half an hour."""
    found = limits_of("azure/P15")
    known = (found.name, found.checked, found.iops, found.burst_ios, found.time_percent)
    assert known == ("azure/P15", "2026-11-21", 1100, 2400 * 1800, 99.9)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("aws/gp2", {}, "depend on the size, which is unknown"),
        ("azure/premium-ssd", {}, "depend on the size, which is unknown"),
        ("aws/io1", {"size_bytes": 1 << 40}, "has no default IOPS"),
        ("gcp/hyperdisk-throughput", {"size_bytes": 4 << 40}, "has no default bandwidth"),
        ("aws/gp2", {"size_bytes": 1 << 40, "iops": 6000.0}, "has no provisioned IOPS"),
        ("aws/gp3", {"size_bytes": 10 << 30, "iops": 6000.0}, "3,000 IOPS and at most 5,000 IOPS"),
        ("aws/gp3", {"size_bytes": 10 << 30, "iops": 2999.0}, "not 2,999 IOPS"),
        ("aws/gp9", {}, "there is no volume type 'aws/gp9'"),
    ],
)
def test_unknown_types_are_refused(name: str, values: dict[str, float], message: str) -> None:
    """Volumes that can't be bought are refused with what is missing or too much."""
    size = values.pop("size_bytes", None)
    with pytest.raises(InputError, match=message) as caught:
        limits_of(name, size_bytes=None if size is None else int(size), iops=values.get("iops"))
    assert caught.value.hint


def test_the_nearest_type_is_suggested() -> None:
    """Providers write their types in other cases than people do."""
    with pytest.raises(InputError) as caught:
        limits_of("azure/p15")
    assert caught.value.hint == "did you mean `azure/P15`?"
