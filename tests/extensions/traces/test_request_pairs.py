"""Pairs of issued and completed requests over several reads of the buffers."""

from __future__ import annotations

import numpy as np

from volbench.extensions.traces.request_pairs import COMPLETION, ISSUE, RequestPairs, decode_rwbs
from volbench.extensions.traces.trace_file import Flags, Kind


def issued(*rows: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return writes of a sector at a time on device 8."""
    result = np.zeros(len(rows), ISSUE)
    for row, (time, sector) in zip(result, rows, strict=True):
        row["time"], row["sector"], row["bytes"] = time, sector, 4096
        row["dev"], row["kind"], row["comm"] = 8, Kind.WRITE, b"dd"
    return result


def completed(*rows: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return completions of a sector at a time on device 8."""
    result = np.zeros(len(rows), COMPLETION)
    for row, (time, sector) in zip(result, rows, strict=True):
        row["time"], row["sector"], row["dev"] = time, sector, 8
    return result


def pairs_of(pairs: RequestPairs, issues: object, completions: object) -> list[tuple[int, int]]:
    """Return time and latency of the requests that are complete."""
    table = pairs.add(np.asarray(issues), np.asarray(completions))
    return sorted(zip(table["time_ns"].to_pylist(), table["latency_ns"].to_pylist(), strict=True))


def test_requests_are_paired_first_issued_first_completed() -> None:
    """Requests at one sector are paired in their order, those at others by their sector."""
    pairs = RequestPairs({8: "sda"})
    found = pairs_of(pairs, issued((10, 1), (20, 1), (30, 2)), completed((15, 1), (70, 1), (90, 2)))
    assert found == [(10, 5), (20, 50), (30, 60)]


def test_a_completion_may_be_read_before_its_issue() -> None:
    """Buffers of CPUs are read one after another, so that a completion waits for a read."""
    pairs = RequestPairs({8: "sda"})
    assert pairs_of(pairs, issued(), completed((50, 7))) == []
    assert pairs_of(pairs, issued((40, 7)), completed()) == [(40, 10)]


def test_a_completion_waits_for_a_cpu_that_is_read_later() -> None:
    """Events of one CPU may be some reads behind those of another, but not for ever."""
    pairs = RequestPairs({8: "sda"})
    assert pairs_of(pairs, issued(), completed((50, 7), (60, 8))) == []
    assert pairs_of(pairs, issued((70, 9)), completed((80, 9))) == [(70, 10)]
    assert pairs_of(pairs, issued((40, 7)), completed()) == [(40, 10)]
    assert pairs_of(pairs, issued((90, 1)), completed((6_000_000_000, 1))) != []
    assert pairs_of(pairs, issued((45, 8)), completed()) == []


def test_completions_of_older_requests_are_left_out() -> None:
    """A request that was issued before the recording does not complete one that came later."""
    pairs = RequestPairs({8: "sda"})
    found = pairs_of(pairs, issued((100, 3)), completed((90, 3), (120, 3)))
    assert found == [(100, 20)]


def test_requests_that_never_complete_have_no_latency() -> None:
    """They are written a minute later, or at the end."""
    pairs = RequestPairs({8: "sda"})
    assert pairs_of(pairs, issued((0, 1), (5, 2)), completed()) == []
    assert pairs_of(pairs, issued((61_000_000_000, 9)), completed()) == [(0, -1), (5, -1)]
    assert pairs.rest()["latency_ns"].to_pylist() == [-1]


def test_letters_of_the_kernel() -> None:
    """Letters before and behind the kind have their own meanings."""
    words = {
        "WS": (Kind.WRITE, Flags.SYNC),
        "FWFS": (Kind.WRITE, Flags.FLUSH | Flags.SYNC),
        "WFM": (Kind.WRITE, Flags.FLUSH | Flags.METADATA),
        "FF": (Kind.FLUSH, Flags.FLUSH),
        "RA": (Kind.READ, Flags.READAHEAD),
        "DS": (Kind.DISCARD, Flags.SYNC),
    }
    letters = np.array([list(word.encode().ljust(10, b"\0")) for word in words], np.uint8)
    kinds, flags = decode_rwbs(letters)
    assert list(zip(kinds.tolist(), flags.tolist(), strict=True)) == list(words.values())
