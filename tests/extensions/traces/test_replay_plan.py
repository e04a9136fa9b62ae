"""The plan of a replay: fitting to the target, lanes, and fio's logs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.traces.made_traces import made_rows, made_trace
from tests.extensions.traces.replayed_traces import SPAN_BYTES, make_trace
from volbench.errors import InputError
from volbench.extensions.traces import replay_plan
from volbench.extensions.traces.replay_plan import (
    Fit,
    Target,
    file_bytes,
    lane_count,
    lanes_of,
    load_trace,
    render_logs,
)
from volbench.extensions.traces.trace_file import Kind

_LINE = re.compile(r"volume (add|open|close|wait \d+ 0|(read|write|trim|sync) \d+ \d+)")


def test_logs_hold_every_io_once_and_no_text_of_the_trace(tmp_path: Path) -> None:
    """Names of processes and devices never reach a line, whatever is in them."""
    load = load_trace(make_trace(tmp_path / "t.parquet"), Target(None))
    logs = render_logs(load, 16)
    lines = [line for log in logs for line in log.splitlines()[1:]]
    assert all(log.startswith("fio version 2 iolog\n") for log in logs)
    assert [line for line in lines if not _LINE.fullmatch(line)] == []
    done = [tuple(line.split()[1:]) for line in lines if " read " in line or " write " in line]
    rows = load.rows
    wanted = [
        (Kind(kind).name.lower(), str(offset), str(size))
        for kind, offset, size in zip(
            *(rows[name].to_pylist() for name in ("kind", "offset_bytes", "size_bytes")),
            strict=True,
        )
    ]
    assert sorted(done) == sorted(wanted)


def test_waits_count_from_the_start_of_fio_in_milliseconds(tmp_path: Path) -> None:
    """Times of one lane ascend, and end a lead after the trace does."""
    load = load_trace(make_trace(tmp_path / "t.parquet"), Target(None), speed=2)
    logs = render_logs(load, 4)
    last = 0
    for log in logs:
        waits = [int(line.split()[2]) for line in log.splitlines() if " wait " in line]
        assert waits == sorted(set(waits))
        last = max(last, *waits)
    assert 0.7 <= last / 1000 - load.duration_s < 0.9


@pytest.mark.parametrize("fit", [Fit.SCALE, Fit.WRAP])
def test_offsets_stay_within_a_smaller_target(fit: Fit, tmp_path: Path) -> None:
    """Both ways leave whole blocks in the target; without one it is refused."""
    path = make_trace(tmp_path / "t.parquet")
    target = Target(1_000_000, 4096)
    load = load_trace(path, target, fit=fit)
    offsets = load.rows["offset_bytes"].to_numpy()
    assert ((offsets + load.rows["size_bytes"].to_numpy()) <= 1_000_000).all()
    assert not (offsets % 4096).any()
    assert len(set(offsets.tolist())) > 100
    with pytest.raises(InputError, match="the trace spans"):
        load_trace(path, target)


def test_scaling_keeps_the_order_of_offsets(tmp_path: Path) -> None:
    """What was before another block stays before it."""
    path = make_trace(tmp_path / "t.parquet")
    whole = load_trace(path, Target(None)).rows["offset_bytes"].to_numpy()
    small = load_trace(path, Target(SPAN_BYTES // 2), fit=Fit.SCALE).rows["offset_bytes"].to_numpy()
    ordered = small[np.argsort(whole)]
    assert (np.diff(ordered[ordered < SPAN_BYTES // 2 - 16384]) >= 0).all()
    assert not (small % 4096).any()


def test_lanes_are_as_many_as_overlap(tmp_path: Path) -> None:
    """Slow I/Os need more lanes; without latencies the number is fixed."""
    fast = load_trace(make_trace(tmp_path / "fast.parquet"), Target(None))
    slow = load_trace(
        make_trace(tmp_path / "slow.parquet", latency_ns=np.full(400, 60_000_000)), Target(None)
    )
    unknown = load_trace(
        make_trace(tmp_path / "unknown.parquet", latency_ns=np.full(400, -1)), Target(None)
    )
    assert lane_count(fast) == replay_plan.MIN_LANES
    assert replay_plan.MIN_LANES < lane_count(slow) <= replay_plan.MAX_LANES
    assert lane_count(unknown) == replay_plan.USUAL_LANES
    assert len(set(lanes_of(slow, lane_count(slow)))) == lane_count(slow)


def test_discards_are_left_out_in_files_alone(tmp_path: Path) -> None:
    """A file cannot discard, a device can; flushes have no place."""
    kinds = np.tile([Kind.READ, Kind.DISCARD, Kind.FLUSH, Kind.WRITE], 100).astype(np.uint8)
    path = make_trace(tmp_path / "t.parquet", kind=kinds)
    file, device = load_trace(path, Target(None)), load_trace(path, Target(None, discards=True))
    assert (file.left_out, device.left_out) == (100, 0)
    text = "".join(render_logs(device, 4))
    assert text.count(" trim ") == 100
    assert text.count("volume sync 0 0\n") == 100


def test_a_trace_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fio's log of single I/Os would not fit in memory."""
    monkeypatch.setattr(replay_plan, "MAX_IOS", 399)
    with pytest.raises(InputError, match="400 I/Os; the maximum for a replay is 399"):
        load_trace(make_trace(tmp_path / "t.parquet"), Target(None))


@pytest.mark.parametrize(
    ("size_bytes", "expected"), [(None, 2 << 20), (1_500_000, 1_500_000), (8 << 20, 2 << 20)]
)
def test_a_new_file_is_of_whole_blocks(
    size_bytes: int | None, expected: int, tmp_path: Path
) -> None:
    """Its end is filled as well, which fio would leave out; but never beyond what there is."""
    path = made_trace(tmp_path / "t.parquet", made_rows([*range(300)]))
    target = Target(size_bytes)
    assert file_bytes(load_trace(path, target), target) == expected


@pytest.mark.parametrize("latency_ns", [0, -1, 100_000])
def test_no_lane_is_empty(latency_ns: int, tmp_path: Path) -> None:
    """A log without I/O is refused by fio: a short trace has fewer lanes."""
    path = made_trace(tmp_path / "t.parquet", made_rows([0] * 5, latency_ns=latency_ns))
    load = load_trace(path, Target(None))
    assert sorted(lanes_of(load, lane_count(load))) == [0, 1, 2, 3, 4]
