"""Profiles that stand for a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from tests.command_line import call
from tests.extensions.traces.made_traces import made_rows, made_trace
from tests.extensions.traces.replayed_traces import make_trace
from volbench.cli.main import cli
from volbench.errors import InputError
from volbench.extensions.traces import trace_profile
from volbench.extensions.traces.trace_file import Kind, read_rows
from volbench.extensions.traces.trace_profile import profile_text


def _jobs(path: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = YAML(typ="safe").load(profile_text(path, "load", note=print))[
        "jobs"
    ]
    return jobs


def _two_phases(path: Path) -> Path:
    """Write 4 s of 400 reads a second, then 6 s of 50 writes a second in the first tenth."""
    times = np.concatenate([np.arange(1600) / 400, 4 + np.arange(300) / 50])
    return make_trace(
        path,
        ios=1900,
        time_ns=(times * 1e9).astype(np.int64),
        kind=np.repeat([Kind.READ, Kind.WRITE], [1600, 300]).astype(np.uint8),
        offset_bytes=np.concatenate([np.arange(1600) * 4096, np.arange(300) % 100 * 4096]),
        size_bytes=np.repeat([4096, 8192], [1600, 300]).astype(np.int32),
    )


def test_phases_have_their_own_rates_sizes_and_places(tmp_path: Path) -> None:
    """A sequential read phase is followed by a slower write phase of another size."""
    reads, writes = _jobs(_two_phases(tmp_path / "t.parquet")).values()
    assert (reads["rw"], reads["bssplit"], reads["percentage_random"]) == (
        "randread",
        "4096/100",
        0,
    )
    assert reads["rate_iops"] == pytest.approx(400, rel=0.05)
    assert "rate_process" not in reads
    assert (writes["rw"], writes["bssplit"]) == ("randwrite", "8192/100")
    assert writes["rate_iops"] == pytest.approx(50, rel=0.05)
    assert writes["random_distribution"].endswith(":0/90")


def test_regular_ios_of_several_sizes_are_limited_by_bytes(tmp_path: Path) -> None:
    """By a linear rate_iops fio would take each for the smallest, and do fewer."""
    path = make_trace(
        tmp_path / "t.parquet",
        ios=1000,
        time_ns=(np.arange(1000) * 5e6).astype(np.int64),
        kind=np.full(1000, Kind.READ, np.uint8),
        offset_bytes=np.arange(1000) * 65536,
        size_bytes=np.resize([4096, 65536], 1000).astype(np.int32),
    )
    (reads,) = _jobs(path).values()
    assert "rate_iops" not in reads
    assert reads["rate"] == pytest.approx(200 * (4096 + 65536) / 2, rel=0.05)


def test_shares_add_up_to_a_hundred_percent(tmp_path: Path) -> None:
    """Fio refuses other sums; rare sizes join the next larger one."""
    sizes = (np.arange(400) % 11 + 1) * 4096
    path = make_trace(tmp_path / "t.parquet", size_bytes=sizes.astype(np.int32))
    (job,) = _jobs(path).values()
    for split in job["bssplit"].split(","):
        parts = [part.split("/") for part in split.split(":")]
        assert len(parts) == 8
        assert sum(int(share) for _, share in parts) == 100
    zones = [zone.split("/") for zone in job["random_distribution"][6:].split(":")]
    assert [sum(map(int, values)) for values in zip(*zones, strict=True)] == [100, 100]


def test_a_restless_load_has_few_phases(tmp_path: Path) -> None:
    """Rates that double and halve each second are joined to six phases."""
    gaps = np.repeat(1 / np.tile([20, 200], 15), np.tile([20, 200], 15))
    times = (np.cumsum(gaps) * 1e9).astype(np.int64)
    path = make_trace(tmp_path / "t.parquet", ios=len(times), time_ns=times)
    assert 1 < len(_jobs(path)) <= trace_profile.MAX_PHASES


def test_a_short_trace_has_a_phase_of_its_length(tmp_path: Path) -> None:
    """Of 1.4 s, a second phase would be shorter than a job can be; of half a second, all are."""
    times = (np.arange(140) * 1e7).astype(np.int64)
    (job,) = _jobs(make_trace(tmp_path / "t.parquet", ios=140, time_ns=times)).values()
    assert job["runtime"] == "1390ms"
    done_bytes = sum(map(int, job["rate"].split(","))) * 1.39
    assert done_bytes == pytest.approx(_bytes_of(tmp_path / "t.parquet"), rel=0.01)
    short = make_trace(tmp_path / "short.parquet", ios=50, time_ns=times[:50])
    with pytest.raises(InputError, match=r"lasts only 0.49 s; a profile needs 1 s"):
        profile_text(short, "load", note=print)


def _bytes_of(path: Path) -> int:
    return int(read_rows(path)["size_bytes"].to_numpy().sum())


def test_the_profile_runs_and_is_scored(tmp_path: Path) -> None:
    """Fio reaches the requests, bytes and mix of a load without chance."""
    trace, folder = _two_phases(tmp_path / "t.parquet"), tmp_path / "out"
    profile, volume = tmp_path / "load.yaml", tmp_path / "volume"
    volume.mkdir()
    runner = CliRunner()
    made = runner.invoke(cli, ["profile", "from-trace", str(trace), "-o", str(profile)])
    assert made.exit_code == 0, made.output
    run = ["run", profile, "--on", volume, "--set", "direct=0", "--output", folder]
    done = runner.invoke(cli, [*map(str, run)])
    assert done.exit_code == 0, done.output
    scored = runner.invoke(cli, ["fidelity", str(folder), "--trace", str(trace), "--json"])
    rows = {row["measure"]: row for row in json.loads(scored.stdout)}
    for name in ("requests", "bytes"):
        assert abs(rows[name]["difference"]) < 0.1
    assert abs(rows["reads"]["difference"]) < 0.05
    other = make_trace(tmp_path / "other.parquet", ios=20)
    scored = runner.invoke(cli, ["fidelity", str(folder), "--trace", str(other)])
    assert "the profile was probably not made from this trace" in " ".join(scored.stdout.split())


def test_a_profile_of_a_few_kilobytes_is_of_whole_blocks(tmp_path: Path) -> None:
    """Its fill writes blocks of 1 MiB, so a shorter file was refused."""
    trace = made_trace(tmp_path / "t.parquet", made_rows(np.arange(100) * 2 * 10**7))
    assert "size: 1048576\n" in trace_profile.profile_text(trace, "short", note=print)


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_time_without_reads_and_writes_is_left_out(tmp_path: Path, *, is_idle: bool) -> None:
    """It was a job without block sizes, which no verb accepted; the user is told."""
    second = 10**9
    times = [*range(0, 2 * second, second // 200), *range(10 * second, 12 * second, second // 200)]
    kinds = [Kind.READ] * len(times)
    if not is_idle:
        flushes = [*range(2 * second, 10 * second, second // 20)]
        times, kinds = [*times, *flushes], [*kinds, *[Kind.FLUSH] * len(flushes)]
    order = np.argsort(times)
    rows = made_rows(np.array(times)[order], kind=np.array(kinds, np.uint8)[order])
    trace, profile = made_trace(tmp_path / "t.parquet", rows), tmp_path / "p.yaml"
    done = call("profile", "from-trace", trace, "-o", profile)
    assert done.returncode == 0, done.stderr
    assert "note: no reads or writes from 2 s to 10 s: this time is left out" in done.stderr
    assert ("note: 160 flush or discard I/Os left out" in done.stderr) is not is_idle
    assert "Warning" not in done.stderr
    assert [*YAML(typ="safe").load(profile.read_text())["jobs"]] == ["phase-1", "phase-2"]
    planned = call("run", profile, "--on", tmp_path, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "warning" not in planned.stderr  # of a rate with several block sizes: there is one
