"""Sizes, durations and rates: what people write, and what is shown to them."""

import math
from collections.abc import Callable

import pytest

from volbench.errors import InputError
from volbench.units import (
    format_count,
    format_duration,
    format_latency,
    format_rate,
    format_size,
    natural_order,
    parse_duration,
    parse_rate,
    parse_size,
)


def test_numbers_in_names_are_sorted_by_size() -> None:
    """Also in the middle of a name, with leading zeros, and with any number of digits."""
    longest = f"job{'9' * 5000}"
    names = ["p15", longest, "job10", "job2-b", "job02", "p4", "a"]
    ordered = ["a", "job02", "job2-b", "job10", longest, "p4", "p15"]
    assert sorted(names, key=natural_order) == ordered


@pytest.mark.parametrize(
    ("letter", "power"), [("", 0), ("k", 1), ("m", 2), ("g", 3), ("t", 4), ("p", 5)]
)
def test_sizes_are_binary_in_every_spelling(letter: str, power: int) -> None:
    """One k is 1024 bytes, whatever the case and whether B or iB follows."""
    for spelling in {letter, letter.upper(), f"{letter}b", f"{letter}B", f" {letter}iB "}:
        assert parse_size(f"3{spelling}") == 3 * 1024**power


@pytest.mark.parametrize("size_bytes", [0, 1, 255, 511, 4096, 2**53 + 1, 2**63 - 1])
def test_whole_sizes_are_exact(size_bytes: int) -> None:
    """No byte is lost to floating point, however large the volume."""
    assert parse_size(size_bytes) == parse_size(hex(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("1.5g", 1610612736), ("0.5k", 512), ("0.25KiB", 256)]
)
def test_fractions_of_a_unit_are_read(text: str, size_bytes: int) -> None:
    """A fraction is a size when it comes to whole bytes."""
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["", "k", "4 q", "4kk", "-1", "1.1k", "0.3", "1e3", "nan", "8192p", "\u0664k"]
)
def test_invalid_sizes_are_refused(text: str) -> None:
    """The error quotes the text and shows how to write it."""
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert repr(text) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("parse", [parse_size, parse_duration, parse_rate])
def test_huge_numbers_are_refused_with_a_short_message(parse: object) -> None:
    """Thousands of digits are neither computed nor repeated to the user."""
    assert callable(parse)
    for text in ("9" * 5000, f"0x{'f' * 5000}", f"1.{'3' * 5000}"):
        with pytest.raises(InputError) as caught:
            parse(text)
        assert len(caught.value.message) < 80


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (300, 300.0),
        ("300s", 300.0),
        ("5m", 300.0),
        ("5min", 300.0),
        ("1.5 h", 5400.0),
        ("2days", 172800.0),
        ("500ms", 0.5),
        ("0", 0.0),
    ],
)
def test_durations_are_read_in_every_spelling(text: str | float, seconds: float) -> None:
    """A bare number is seconds, and m is minutes."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("125MB/s", 125e6),
        ("125 MBps", 125e6),
        ("120MiB/s", 120 * 2**20),
        ("1GB/s", 1e9),
        ("0.5GiB/s", 2**29),
        (1000, 1000.0),
        ("1k", 1000.0),
    ],
)
def test_rates_are_decimal_unless_they_say_otherwise(text: str | float, bytes_per_s: float) -> None:
    """A provider's MB is a million bytes."""
    assert parse_rate(text) == bytes_per_s


@pytest.mark.parametrize(
    ("parse", "texts"),
    [
        (parse_duration, ["", "soon", "5m30s", "-1s", "3weeks", "9300000000000"]),
        (parse_rate, ["125mb/s", "1Gb/s", "fast", "-1MB/s", "1XB/s", ""]),
    ],
)
def test_invalid_quantities_are_refused(parse: Callable[[str], float], texts: list[str]) -> None:
    """Neither words nor what fio could not count; bits and bytes are never guessed."""
    for text in texts:
        with pytest.raises(InputError) as caught:
            parse(text)
        assert caught.value.hint


def test_formatted_sizes_are_read_back() -> None:
    """What is shown for a power of two is what a profile may hold."""
    for power in range(50):
        assert parse_size(format_size(2**power)) == 2**power


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (format_rate(125e6), "125 MB/s"),
        (format_rate(999.9e3), "1 MB/s"),
        (format_rate(0), "0 B/s"),
        (format_rate(math.nan), "n/a"),
        (format_count(1100), "1.1k"),
        (format_count(950), "950"),
        (format_count(math.nan), "n/a"),
        (format_latency(0.00025), "250 us"),
        (format_latency(0.0025), "2.5 ms"),
        (format_latency(1.2), "1.2 s"),
        (format_latency(0), "0 s"),
        (format_latency(5e-9), "5 ns"),
        (format_latency(math.nan), "n/a"),
        (format_duration(-2.6e-16), "0s"),
        (format_duration(1.5), "1.5s"),
        (format_duration(45), "45s"),
        (format_duration(59.6), "1m 00s"),
        (format_duration(300), "5m 00s"),
        (format_duration(7500), "2h 05m"),
        (format_duration(273600), "3d 04h"),
    ],
)
def test_numbers_are_formatted_with_units(shown: str, text: str) -> None:
    """Three digits and a unit, never an exponent."""
    assert shown == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(2300, "2300"), (1000, "1000"), (4096, "4k"), (1536, "1.5k"), (12636.2, "12.3k")],
)
def test_block_sizes_are_shown_as_fio_takes_them(size_bytes: float, text: str) -> None:
    """2.246k is a block size that nobody wrote; a mean of sizes is rounded."""
    assert format_size(size_bytes) == text
