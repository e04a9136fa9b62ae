"""Replays with the real fio, in a directory and on a loop device."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from click.testing import CliRunner, Result

from tests.command_line import COMMAND, call
from tests.engine.conftest import Disks
from tests.extensions.traces.made_traces import made_rows, made_trace
from tests.extensions.traces.replayed_traces import SPAN_BYTES, make_trace
from tests.waiting import until
from volbench.cli.main import cli
from volbench.errors import ArchiveError, FindingsError, InputError, RefusedError
from volbench.extensions.traces.trace_file import Kind


def _call(*words: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)], env={"COLUMNS": "80"})


def _measures(folder: Path, *options: object) -> dict[str, dict[str, float]]:
    shown = _call("fidelity", folder, "--json", *options)
    assert shown.exit_code == 0, shown.output
    return {row["measure"]: row for row in json.loads(shown.stdout)}


@pytest.mark.alone
def test_a_trace_is_replayed_in_a_directory(tmp_path: Path) -> None:
    """All requests arrive, at half of their times; results and warnings can be shown."""
    trace, folder = make_trace(tmp_path / "trace.parquet"), tmp_path / "replay"
    (tmp_path / "volume").mkdir()
    done = _call(
        "replay",
        trace,
        "--on",
        tmp_path / "volume",
        "--speed",
        2,
        "--set",
        "direct=0",
        "-o",
        folder,
    )
    assert done.exit_code == 0, done.output
    assert "Fidelity of the replay" in done.stdout
    assert "same blocks" not in done.output
    measures = _measures(folder)
    for name in ("requests", "bytes", "reads"):
        assert measures[name]["met"] is True
        assert measures[name]["recorded"] == measures[name]["replayed"]
    # A busy machine wakes fio late, but the replay is not half a second longer than the trace.
    assert measures["lag p50"]["replayed"] < 0.05
    rows = json.loads(_call("show", folder, "--json").stdout)
    assert {row["rw"] for row in rows if row["job"] == "replay"} == {"replayed"}
    assert sum(row["total_ios"] or 0 for row in rows if row["job"] == "replay") == 400
    assert not (tmp_path / "volume" / "evil").exists()
    found = {row["rule"] for row in json.loads(_call("check", folder, "--json").stdout)}
    assert not found & {"inconsistent-result", "overlapping-jobs", "damaged-files"}
    assert _call("check", "--files", folder).exit_code == 0
    for name in ("replay/lane-00.iolog", "replay/trace.parquet", "replay/new.iolog"):
        file = folder / name
        before = file.read_bytes() if file.exists() else b""
        file.write_bytes(before + b" ")
        checked = call("check", "--files", folder)
        assert (checked.returncode, name in checked.stdout) == (7, True), checked
        file.write_bytes(before) if before else file.unlink()


@pytest.mark.parametrize("volume", ["", "small.img"])
def test_a_trace_of_a_few_kilobytes_is_replayed(volume: str, tmp_path: Path) -> None:
    """In a directory and in a file that is smaller than the usual block of a fill.

    Flushes are in no log of fio; its result counts them.
    """
    kinds = [Kind.READ, Kind.FLUSH, Kind.READ, Kind.READ]
    sizes = [0 if kind is Kind.FLUSH else 4096 for kind in kinds]
    rows = made_rows([10**7 * n for n in range(4)], kind=kinds, size_bytes=sizes)
    trace = made_trace(tmp_path / "trace.parquet", rows)
    target = tmp_path / volume
    if volume:
        target.write_bytes(bytes(65536))
    words = ("--set", "direct=0", "--allow-destroy", target, "-o", tmp_path / "replay")
    done = _call("replay", trace, "--on", target, *(words if volume else (*words[:2], *words[4:])))
    assert done.exit_code == 0, done.output
    measures = _measures(tmp_path / "replay")
    assert (measures["requests"]["replayed"], measures["flushes"]["replayed"]) == (3, 1)


def test_the_plan_knows_time_and_bytes_of_the_trace(tmp_path: Path) -> None:
    """Both are in the trace; twice as fast takes half the time, and nothing is unknown."""
    kinds = [Kind.READ, Kind.WRITE] * 500
    rows = made_rows([10**7 * n for n in range(1000)], kind=kinds)
    trace = made_trace(tmp_path / "trace.parquet", rows)
    times = {}
    for speed in (1, 2):
        words = ("replay", trace, "--on", tmp_path, "--speed", speed, "--dry-run")
        plan = _call(*words)
        assert plan.exit_code == 0, plan.output
        assert "unknown" not in plan.output
        assert "Writes: at most 5.95 MiB" in plan.output  # a fill of 4 MiB, 500 writes
        rows_of = json.loads(_call(*words, "--json").stdout)
        times[speed] = rows_of[1]["expected_s"]
    assert times[1] - times[2] == pytest.approx(9.99 / 2, abs=0.01)
    assert times[1] == pytest.approx(9.99 + 0.78, abs=0.01)


@pytest.mark.root
def test_a_device_needs_consent_and_is_never_left(tmp_path: Path) -> None:
    """A trace beyond its end is refused, then without consent, then scaled onto it."""
    trace, folder = make_trace(tmp_path / "trace.parquet"), tmp_path / "replay"
    disks = Disks(tmp_path)
    with closing(disks):
        device = disks.attach(disks.image(SPAN_BYTES // 2))
        beyond = _call("replay", trace, "--on", device)
        assert isinstance(beyond.exception, InputError)
        assert "the trace spans" in beyond.exception.message
        command = ("replay", trace, "--on", device, "--fit", "scale", "-o", folder)
        refused = _call(*command)
        assert isinstance(refused.exception, RefusedError)
        assert "never written do not access the storage" in refused.output
        done = _call(*command, "--allow-destroy", device)
        assert done.exit_code == 0, done.output
        assert _measures(folder)["requests"]["replayed"] == 400
        job = (folder / "runs" / "001-replay-r1" / "job.fio").read_text(encoding="utf-8")
        assert job.count(f"replay_redirect={device}\n") == 16


def test_what_falls_short_is_a_finding(tmp_path: Path) -> None:
    """A recording with three more I/Os in a hundred than were replayed is not met."""
    trace, folder = make_trace(tmp_path / "trace.parquet", rate=2000), tmp_path / "replay"
    (tmp_path / "volume").mkdir()
    _call("replay", trace, "--on", tmp_path / "volume", "--set", "direct=0", "-o", folder)
    longer = make_trace(tmp_path / "longer.parquet", ios=412, rate=2000)
    unrelated = _call("fidelity", folder, "--trace", longer)
    assert isinstance(unrelated.exception, InputError)
    assert unrelated.exception.message == f"{longer} is not the trace that replay replayed"
    (folder / "replay" / "trace.parquet").write_bytes(longer.read_bytes())
    strict = _call("fidelity", folder, "--strict")
    assert isinstance(strict.exception, FindingsError)
    assert "12 I/Os did not complete" in " ".join(strict.output.split())
    copytree(folder, tmp_path / "other" / "replay")
    table = _call("fidelity", folder, tmp_path / "other" / "replay").stdout
    heads = [line.split()[:2] for line in table.splitlines()]
    assert heads[1] == ["campaign", "measure"]
    assert ["replay", "requests"] in heads
    assert any(first.endswith("other/replay") for first, *_ in filter(None, heads))
    shown = json.loads(_call("fidelity", folder, tmp_path / "other" / "replay", "--json").stdout)
    assert {row["campaign"] for row in shown} == {"replay", str(tmp_path / "other" / "replay")}
    rmtree(folder / "tables")
    found = json.loads(_call("check", folder, "--json").stdout)
    (short,) = [row for row in found if row["rule"] == "replay-falls-short"]
    assert "requests -2.9 %, 12 I/Os did not complete" in short["message"]


def test_an_interrupted_replay_is_resumed_without_consent(tmp_path: Path) -> None:
    """Its logs are found where the folder was moved to, and refused if they were modified."""
    trace, folder = make_trace(tmp_path / "trace.parquet", ios=1200), tmp_path / "replay"
    (tmp_path / "volume").mkdir()
    words = ("replay", trace, "--on", tmp_path / "volume", "--set", "direct=0", "-o", folder)
    process = subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.PIPE)
    until((folder / "runs" / "002-replay-r1" / "job.fio").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    folder = folder.rename(tmp_path / "moved")
    log = folder / "replay" / "lane-00.iolog"
    text = log.read_text(encoding="utf-8")
    log.write_text(text.replace("read", "write"), encoding="utf-8")
    modified = _call("resume", folder)
    assert isinstance(modified.exception, ArchiveError)
    problem = f"the logs in {log.parent} were modified after planning"
    assert modified.exception.message == problem
    log.write_text(text, encoding="utf-8")
    for _ in range(2):  # the second time there is nothing to resume
        done = _call("resume", folder, "--retry-failed")
        assert done.exit_code == 0, done.output
        assert f"volbench fidelity {folder}\n" in done.stderr
    measures = _measures(folder)
    assert measures["requests"]["replayed"] == 1200
    assert measures["reads"]["met"] is True
    assert str(tmp_path) not in _logs_of(folder)


def _logs_of(folder: Path) -> str:
    lines = (folder / "runs" / "002-replay-r1" / "job.fio").read_text(encoding="utf-8").split("\n")
    return "\n".join(line for line in lines if line.startswith("read_iolog="))


def test_a_replay_runs_in_the_background_on_a_file(tmp_path: Path) -> None:
    """A new file is made as long as the trace needs; one of somebody else is never overwritten."""
    trace, folder = make_trace(tmp_path / "trace.parquet"), tmp_path / "replay"
    volume = tmp_path / "volume.img"
    words = ("replay", trace, "--on", volume, "--set", "direct=0", "--detach", "-o", folder)
    volume.write_bytes(bytes(SPAN_BYTES))
    assert isinstance(_call(*words).exception, RefusedError)
    volume.unlink()
    done = _call(*words)
    assert done.exit_code == 0, done.output
    assert "Running in the background" in done.output
    followed = _call("status", "--follow", folder)
    assert followed.exit_code == 0
    assert f"volbench fidelity {folder}\n" in followed.stderr
    assert _measures(folder)["requests"]["replayed"] == 400


def test_the_help_names_the_defaults_of_a_replay() -> None:
    """The file of a replay is as long as the trace needs, not the 1 GiB of a measurement."""
    text = " ".join(_call("replay", "--help").stdout.split())
    assert "as much as the trace needs" in text
    assert "1g" not in text
