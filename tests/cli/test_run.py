"""`volbench run` with real fio: what a user asks for is what is run, recorded and exported."""

import csv
import io
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import volbench as volbench_package
from tests.command_line import Volbench, call, settings, start
from tests.held_fio import HeldFio
from tests.waiting import until

pytestmark = pytest.mark.slow

SHRUNK = settings("size=4m", "runtime=500ms", "sample=250ms")
"""Less than what volbench follows to the device after a run: see writeback.SLACK_BYTES."""
CALM = settings("size=4m", "runtime=1s", "rate_iops=20")
"""The same for runs whose speed proves nothing: they leave the CPU to others."""
FIVE = ("quick", *CALM, *settings("*-128k=", "mixed-qd16="))
"""The first five runs of a profile."""
THIRD = "randread-qd16"
STORM = settings(
    "size=4m", "vm.boot.runtime=1s", "vm.after.runtime=1s", "stagger=500ms", "clients=2"
)

AKS = {
    "test1": ("os", True, "write", 1, 4096),
    "test2": ("data", False, "write", 1, 4096),
    "test3": ("data", True, "write", 1, 4096),
    "test4": ("data", True, "write", 16, 4096),
    "test5": ("data", True, "write", 1, 131072),
    "test6": ("data", False, "write", 1, 262144),
    "test7": ("data", False, "randwrite", 1, 4096),
    "test8": ("data", False, "randwrite", 16, 262144),
    "test9": ("data", False, "randwrite", 16, 4096),
}


def cpu_settings() -> list[str]:
    """Return the fix that volbench offers for machines with one CPU."""
    return [] if (os.cpu_count() or 1) > 1 else list(settings("cpus_allowed=0"))


@pytest.fixture(scope="module")
def aks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a shrunk aks-disk campaign, run once for all tests here."""
    root = tmp_path_factory.mktemp("aks")
    for name in ("d1", "d2"):
        (root / name).mkdir()
    arguments = ["run", "aks-disk", "--on", f"data={root / 'd1'}", "--on", f"os={root / 'd2'}"]
    done = call(*arguments, *SHRUNK, *cpu_settings(), "--output", root / "out")
    assert done.returncode == 0, done.stderr
    return root / "out"


def test_nine_finished_runs_one_after_another(aks: Path) -> None:
    """All nine tests finish, in order, and no two of them overlap in time."""
    campaign = volbench_package.open_campaign(aks)
    assert [note.state for note in campaign.runs.values()] == ["finished"] * 9
    statuses = [
        json.loads((aks / "runs" / run / "status.json").read_text()) for run in campaign.runs
    ]
    for before, after in itertools.pairwise(statuses):
        assert before["ended_utc"] <= after["started_utc"]


def test_the_matrix_equals_the_published_one(aks: Path) -> None:
    """They are those of the article; buffered writes have no queue depth, whatever it asks for."""
    summary = volbench_package.open_campaign(aks).summary()
    found = {
        row.job: (row.role, bool(row.direct), row.rw, row.iodepth, row.block_bytes)
        for row in summary.itertuples()
    }
    assert found == AKS | {job: (*AKS[job][:3], 1, AKS[job][4]) for job in ("test8", "test9")}
    text = (aks / "runs" / "004-test4-r1" / "job.fio").read_text()
    for line in ("ioengine=libaio", "group_reporting=1", "thread=1", "cpus_allowed=1", "bs=4096"):
        assert line in text or (line == "cpus_allowed=1" and cpu_settings())


def test_exported_rows_agree_exactly_with_fio(aks: Path, volbench: Volbench) -> None:
    """Not one number changes between fio's JSON and the exported CSV."""
    exported = volbench("export", aks, "--format", "csv")
    assert exported.returncode == 0, exported.stderr
    rows = list(csv.DictReader(io.StringIO(exported.stdout)))
    assert len(rows) == 9
    for row in rows:
        raw = json.loads((aks / "runs" / row["run"] / "fio.json").read_text())
        write = raw["jobs"][0]["write"]
        assert float(row["iops"]) == write["iops"]
        assert float(row["bw_bytes_per_s"]) == write["bw_bytes"]
        assert int(row["io_bytes"]) == write["io_bytes"]
        assert int(row["total_ios"]) == write["total_ios"]
        assert float(row["runtime_s"]) == write["runtime"] / 1000
        for name in ("lat", "clat"):
            block = write[f"{name}_ns"]
            assert float(row[f"{name}_mean_s"]) == block["mean"] / 1e9
            assert float(row[f"{name}_max_s"]) == block["max"] / 1e9
            for column, percentile in (("p99", "99.000000"), ("p9999", "99.990000")):
                end_of_bin = block["percentile"][percentile]  # May lie beyond the maximum.
                assert float(row[f"{name}_{column}_s"]) == min(end_of_bin, block["max"]) / 1e9


def test_nothing_is_left_behind(aks: Path) -> None:
    """Scratch files are gone, and the campaign folder holds no path of the controller."""
    assert list((aks.parent / "d1").iterdir()) == []
    assert list((aks.parent / "d2").iterdir()) == []
    assert str(aks) not in (aks / "campaign.json").read_text()


def test_end_of_a_campaign_stores_verdicts_and_findings(
    scratch: Path, tmp_path: Path, volbench: Volbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `run` has computed and stored, `show` and `check` read."""
    profile = tmp_path / "p.yaml"
    profile.write_text(
        "name: short\njobs:\n  reads: {rw: randread, ioengine: psync, size: 1m, runtime: 1s}\n"
    )
    out = tmp_path / "out"
    done = volbench("run", profile, "--on", scratch, "--output", out)
    assert done.returncode == 0, done.stderr
    stamp = out / "tables" / "rules-stamp"
    assert stamp.exists()
    stored = stamp.stat().st_mtime_ns
    monkeypatch.delattr("volbench.analyse.findings.finding_rows")
    monkeypatch.delattr("volbench.analyse.bottleneck.campaign_context.verdict_rows")
    for verb in ("show", "check"):
        read = volbench(verb, out)
        assert read.returncode == 0, read.stderr
    assert stamp.stat().st_mtime_ns == stored


def test_numbers_of_clients_are_measured_and_repeated(scratch: Path, tmp_path: Path) -> None:
    """One client, then both, and again with --like; more than there are is refused."""
    profile = tmp_path / "p.yaml"
    profile.write_text("name: p\nclients: 2\njobs: {a: {rw: read}}\n")
    run: tuple[str | Path, ...] = ("run", profile, "--on", scratch, "--yes", *CALM)
    refused = call(*run, "--client-counts", "1,3", "-o", tmp_path / "never")
    assert refused.returncode == 2
    assert "there are only 2 clients" in refused.stderr
    for text in ("1,x", "0,1", "2,2"):
        refused = call(*run, "--client-counts", text, "-o", tmp_path / "never")
        assert refused.returncode == 2
        assert "must be different numbers of clients" in refused.stderr
    plans = []
    first = (*run, "--client-counts", "2,1", "-o", tmp_path / "first")
    for arguments in (first, ("run", "--like", tmp_path / "first", "--on", scratch, "--yes")):
        planned = call(*arguments, "--dry-run", "--json")
        assert planned.returncode == 0, planned.stderr
        plans.append([run["run"] for run in json.loads(planned.stdout)])
        if arguments is first:
            done = call(*first)
            assert done.returncode == 0, done.stderr
    first_step = [f"001-a-clients2-r1-c0{client}" for client in (1, 2)]
    assert plans[0] == [*first_step, "002-a-clients1-r1-c01"]
    assert plans[0] == plans[1]


def test_dd_bias_does_what_dd_does(scratch: Path, tmp_path: Path, volbench: Volbench) -> None:
    """The same bytes in the same blocks, and nothing is left."""
    out, copy = tmp_path / "out", tmp_path / "copy"
    done = volbench(
        "run", "dd-bias", "--on", scratch, *settings("size=4m", "runtime=1s"), "--output", out
    )
    assert done.returncode == 0, done.stderr
    summary = volbench_package.open_campaign(out).summary().set_index("job")
    command = ["dd", "if=/dev/zero", f"of={copy}", "bs=1M", "count=4", "conv=fsync"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    flushed = summary.loc["flushed"]
    assert flushed["io_bytes"] == copy.stat().st_size
    assert (flushed["total_ios"], flushed["block_bytes"]) == (4, 2**20)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("profile", "small"),
    [("quick", CALM), ("oltp", SHRUNK), ("multi-file", SHRUNK), ("boot-storm", STORM)],
    ids=["quick", "oltp", "multi-file", "boot-storm"],
)
def test_other_bundled_profiles_run(
    profile: str, small: Sequence[str], scratch: Path, tmp_path: Path, volbench: Volbench
) -> None:
    """Each bundled profile finishes when shrunk, with rows for each of its sections."""
    out = tmp_path / "out"
    done = volbench("run", profile, "--on", scratch, *small, "--output", out)
    assert done.returncode == 0, done.stderr
    summary = volbench_package.open_campaign(out).summary()
    assert (summary["status"] == "finished").all()
    assert (summary["io_bytes"] > 0).sum() >= len(summary["group"].unique())
    if profile == "oltp":
        assert set(summary["group"]) == {"fill", "pages", "log"}
        assert "sync" in set(summary["direction"])


def start_quick(
    scratch: Path, out: Path, fio: HeldFio, *, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start `volbench run quick` in a process of its own, with little load."""
    words = ("run", *FIVE, "--on", scratch, "--output", out)
    return start(*words, stdout=subprocess.DEVNULL, stderr=stderr, env=fio.environment)


@pytest.mark.smoke
@pytest.mark.parametrize("is_killed", [False, True])
def test_what_is_finished_is_kept_and_resumed(
    scratch: Path, tmp_path: Path, volbench: Volbench, *, is_killed: bool
) -> None:
    """After SIGINT or SIGKILL in the third run, resume does only what is left.

    SIGINT ends fio first, exit is 130; after SIGKILL, resume ends the fio that was left.
    """
    out = tmp_path / "out"
    process = start_quick(scratch, out, HeldFio(tmp_path, THIRD), stderr=subprocess.PIPE)
    wait_until_finished(out, count=2)
    until(lambda: fio_below(scratch))
    process.send_signal(signal.SIGKILL if is_killed else signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    if not is_killed:
        assert process.returncode == 130
        assert "volbench resume" in stderr
        assert not fio_below(scratch)
    before = [run for run, state in states(out).items() if state == "finished"]
    assert len(before) == 2
    # SIGINT removes the file, which is then filled again.
    stamps = {run: started(out, run) for run in before if is_killed or "fill" not in run}
    done = volbench("resume", out)
    assert done.returncode == 0, done.stderr
    assert set(states(out).values()) == {"finished"}
    assert {run: started(out, run) for run in stamps} == stamps
    assert not fio_below(scratch)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_of_two_controllers_started_at_once_one_runs(
    scratch: Path, tmp_path: Path, verb: str
) -> None:
    """One finishes every run, none twice; the other ends with exit 7 and says why."""
    out = tmp_path / "out"
    if verb == "resume":
        (tmp_path / "first").mkdir()
        process = start_quick(scratch, out, HeldFio(tmp_path / "first", THIRD))
        wait_until_finished(out, count=2)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=300)
    fio = HeldFio(tmp_path)
    quick = (*FIVE, "--on", scratch, "--output", out)
    words = (verb, *(quick if verb == "run" else (out,)))
    pair = [start(*words, env=fio.environment) for _ in range(2)]
    until(lambda: any(each.poll() is not None for each in pair))
    fio.release()
    said = {each.communicate(timeout=300)[1]: each.returncode for each in pair}
    assert sorted(said.values()) == [0, 7], said
    refusal = next(text for text, status in said.items() if status)
    assert "another volbench" in refusal or (verb == "run" and "is not empty" in refusal)
    assert set(states(out).values()) == {"finished"}
    earlier = {"run": 0, "resume": 1}[verb]  # attempts of a run
    assert not list(out.glob(f"runs/*/attempts/{earlier + 1}"))
    assert list(scratch.iterdir()) == []


def states(out: Path) -> dict[str, str]:
    """Return the state of each run."""
    return {run: str(note.state) for run, note in volbench_package.open_campaign(out).runs.items()}


def started(out: Path, run: str) -> str:
    """Return when a run was started."""
    return str(json.loads((out / "runs" / run / "status.json").read_text())["started_utc"])


def wait_until_finished(out: Path, *, count: int) -> None:
    """Wait until so many runs are finished."""
    until((out / "campaign.json").exists)
    until(lambda: list(states(out).values()).count("finished") >= count)


def fio_below(folder: Path) -> list[str]:
    """Return command lines of fio processes that have a file below `folder` open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("comm").read_text().strip() != "fio":
                continue
            opened = [str(link.readlink()) for link in process.joinpath("fd").iterdir()]
        except OSError:
            continue
        if any(name.startswith(str(folder)) for name in opened):
            found.append(process.name)
    return found


def test_results_and_plans_have_every_format(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Data are on stdout alone: JSON of a plan, CSV of results, and the chosen columns."""
    profile = tmp_path / "p.yaml"
    profile.write_text("name: p\nsample: 0\njobs:\n  a: {rw: write, size: 1m, filename: f}\n")
    start = ["run", profile, "--on", scratch]
    (planned,) = json.loads(volbench(*start, "--dry-run", "--json").stdout)
    assert (planned["run"], planned["options"]["rw"]) == ("001-a-r1", "write")
    done = volbench(*start, "--output", tmp_path / "out", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["rw"], row["repeats"]) == ("write", "1")
    again = volbench("resume", tmp_path / "out", "--columns", "rw,repeats", "--format", "markdown")
    assert "|rw|repeats|" in again.stdout.replace(" ", "")
