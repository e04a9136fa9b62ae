"""Every bundled type against the limits its provider documents."""

import pytest

from tests.extensions.catalogue.typed_limits import limits_of
from volbench.errors import InputError
from volbench.extensions.catalogue.volume_types import bundled_types
from volbench.units import parse_rate, parse_size

# Types and their sizes, bought IOPS, bought bandwidth; then IOPS, bandwidth, burst IOPS and its
# credits, burst bandwidth and its credits.
CASES = """
azure/P1+azure/P2+azure/P3+azure/P4 4g+8g+16g+32g - - 120 25MB/s 3500 6084000 170MB/s 261e9
azure/P6 64g - - 240 50MB/s 3500 5868000 170MB/s 216e9
azure/P10 128g - - 500 100MB/s 3500 5400000 170MB/s 126e9
azure/P15 256g - - 1100 125MB/s 3500 4320000 170MB/s 81e9
azure/P20 512g - - 2300 150MB/s 3500 2160000 170MB/s 36e9
azure/P30 1t - - 5000 200MB/s - - - -
azure/P40+azure/P50 2t+4t - - 7500 250MB/s - - - -
azure/P60 8t - - 16000 500MB/s - - - -
azure/P70 16t - - 18000 750MB/s - - - -
azure/P80 32767g - - 20000 900MB/s - - - -
azure/premium-ssd 1g - - 120 25MB/s 3500 6084000 170MB/s 261e9
azure/premium-ssd 129g - - 1100 125MB/s 3500 4320000 170MB/s 81e9
azure/premium-ssd 32767g - - 20000 900MB/s - - - -
azure/premium-ssd-v2 1g - - 3000 125MB/s - - - -
azure/premium-ssd-v2 8g 4000 1000MB/s 4000 1000MB/s - - - -
azure/premium-ssd-v2 160g 80000 2000MB/s 80000 2000MB/s - - - -
azure/premium-ssd-v2 64t - - 3000 125MB/s - - - -
azure/ultra-disk 4g 4000 1000MB/s 4000 1000MB/s - - - -
azure/ultra-disk 64g 64000 10000MB/s 64000 10000MB/s - - - -
azure/ultra-disk 512g 400000 10000MB/s 400000 10000MB/s - - - -
azure/ultra-disk 64t 100 1MB/s 100 1MB/s - - - -
azure/E1+azure/E2+azure/E3+azure/E4 4g+8g+16g+32g - - 500 60MB/s 600 180000 150MB/s 162e9
azure/E6+azure/E10+azure/E15+azure/E20 64g+128g+256g+512g - - 500 60MB/s 600 180000 150MB/s 162e9
azure/E30 1t - - 500 60MB/s 1000 900000 250MB/s 342e9
azure/E40+azure/E50 2t+4t - - 500 60MB/s - - - -
azure/E60 8t - - 2000 400MB/s - - - -
azure/E70 16t - - 4000 600MB/s - - - -
azure/E80 32767g - - 6000 750MB/s - - - -
azure/standard-ssd 300g - - 500 60MB/s 600 180000 150MB/s 162e9
azure/standard-ssd 32767g - - 6000 750MB/s - - - -
azure/S4+azure/S6+azure/S10+azure/S15+azure/S20 32g+64g+128g+256g+512g - - 500 60MB/s - - - -
azure/S30+azure/S40+azure/S50 1t+2t+4t - - 500 60MB/s - - - -
azure/S60 8t - - 1300 300MB/s - - - -
azure/S70+azure/S80 16t+32767g - - 2000 500MB/s - - - -
azure/standard-hdd 1g - - 500 60MB/s - - - -
azure/standard-hdd 32767g - - 2000 500MB/s - - - -
aws/gp2 1g - - 100 128MiB/s 3000 5400000 - -
aws/gp2 100g - - 300 128MiB/s 3000 5400000 - -
aws/gp2 170g - - 510 128MiB/s 3000 5400000 - -
aws/gp2 200g - - 600 150MiB/s 3000 5400000 250MiB/s -
aws/gp2 334g - - 1002 250MiB/s 3000 5400000 - -
aws/gp2 1000g - - 3000 250MiB/s - - - -
aws/gp2+aws/gp2 5334g+16t - - 16000 250MiB/s - - - -
aws/gp3 1g - - 3000 125MiB/s - - - -
aws/gp3 500g 6000 250MB/s 6000 250MB/s - - - -
aws/gp3 64t 80000 2000MiB/s 80000 2000MiB/s - - - -
aws/io1 4g 100 - 100 25MiB/s - - - -
aws/io1 640g 32000 - 32000 500MiB/s - - - -
aws/io1 960g 48000 - 48000 750MiB/s - - - -
aws/io1 16t 64000 - 64000 1000MiB/s - - - -
aws/io2 4g 4000 - 4000 1024MiB/s - - - -
aws/io2 256g 256000 - 256000 4000MiB/s - - - -
aws/io2 64t 16000 - 16000 4000MiB/s - - - -
aws/st1 128g - - 500 5MiB/s - - 31.25MiB/s 137438953472
aws/st1 2t - - 500 80MiB/s - - 500MiB/s 2199023255552
aws/st1+aws/st1 12.5t+16t - - 500 500MiB/s - - - -
aws/sc1 128g - - 250 1.5MiB/s - - 10MiB/s 137438953472
aws/sc1 3.125t - - 250 37.5MiB/s - - 250MiB/s 3435973836800
aws/sc1 16t - - 250 192MiB/s - - 250MiB/s 17592186044416
gcp/pd-standard 10g - - 7.5 1.2MiB/s - - - -
gcp/pd-standard 64t - - 7500 400MiB/s - - - -
gcp/pd-balanced 10g - - 3060 142.8MiB/s - - - -
gcp/pd-balanced 64t - - 80000 1200MiB/s - - - -
gcp/pd-ssd 10g - - 6300 244.8MiB/s - - - -
gcp/pd-ssd 64t - - 100000 1200MiB/s - - - -
gcp/pd-extreme 500g 10000 - 10000 3000MiB/s - - - -
gcp/pd-extreme 64t 120000 - 120000 3000MiB/s - - - -
gcp/hyperdisk-balanced 4g - - 2000 140MiB/s - - - -
gcp/hyperdisk-balanced 64t 160000 2400MiB/s 160000 2400MiB/s - - - -
gcp/hyperdisk-throughput 2t - 20MiB/s 80 20MiB/s - - - -
gcp/hyperdisk-throughput 32t - 2400MiB/s 9600 2400MiB/s - - - -
gcp/hyperdisk-extreme 64g 128 - 128 32MiB/s - - - -
gcp/hyperdisk-extreme 100g 120000 - 120000 5000MiB/s - - - -
gcp/hyperdisk-extreme 64t 350000 - 350000 5000MiB/s - - - -
gcp/hyperdisk-balanced-high-availability 64t 100000 2400MiB/s 100000 2400MiB/s - - - -
gcp/hyperdisk-ml 4g - 400MiB/s 6400 400MiB/s - - - -
gcp/hyperdisk-ml 64t - 2097152MiB/s 33554432 2097152MiB/s - - - -
gcp/local-ssd 375g - - 90000 350MiB/s - - - -
gcp/titanium-ssd 375g - - 75000 330MiB/s - - - -
aws/i3-large-local 475GB - - 35000 - - - - -
aws/i3-xlarge-local 950GB - - 70000 - - - - -
aws/i3-2xlarge-local 1900GB - - 180000 - - - - -
aws/i3-4xlarge-local 3800GB - - 360000 - - - - -
"""
ROWS = [
    [name, size, *limits]
    for names, sizes, *limits in map(str.split, CASES.strip().splitlines())
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
