"""`volbench measure` with real fio: a workload from options, a conclusion, and a comparison."""

import re
import sys
from pathlib import Path

import pytest

import volbench
from tests.command_line import Volbench, call
from volbench.plan.expansion.target_arms import target_names

RENDERER = "volbench.present.renderers.matplotlib"
BRIEF = ("--size", "4m", "--runtime", "1s")


@pytest.mark.slow
def test_one_volume_gets_a_conclusion(tmp_path: Path) -> None:
    """The workload is measured as often as asked; medians, steadiness and warnings follow."""
    (tmp_path / "data").mkdir()
    done = call(
        *("measure", "--on", tmp_path / "data", *BRIEF, "--repeat", "2"),
        *("--rw", "randwrite", "--iodepth", "4", "--output", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    rows = volbench.open_campaign(tmp_path / "out").summary()
    rows = rows[rows["phase"] == "measured"]
    assert list(rows["rw"]) == ["randwrite"] * 2
    assert set(rows["iodepth"]) == {4}
    assert set(rows["size_bytes"]) == {4 << 20}
    assert re.search(
        # no median is given where two repeats of half a second differ twofold
        r"randwrite 4k, queue depth 4: .* IOPS (\(median of 2, |in 2 repeats)",
        done.stdout,
    )
    assert "Too short to say whether it is steady" in done.stdout
    chart = Path(done.stdout.splitlines()[-1].removeprefix("Chart: "))
    assert chart.parent == tmp_path / "out" / "report"
    assert chart.read_text(encoding="utf-8").count("<svg") == 1
    assert not list((tmp_path / "data").iterdir())
    assert call("resume", tmp_path / "out").stdout == done.stdout
    assert call("resume", "--quiet", tmp_path / "out").stdout.count("\n") == 1


@pytest.mark.slow
def test_a_volume_is_measured_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conclusion says why no chart follows; a chart that was asked for is an error."""
    for name in [each for each in sys.modules if f"{each}.".startswith(f"{RENDERER}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "data").mkdir()
    out = tmp_path / "out"
    done = call("measure", "--on", tmp_path / "data", *BRIEF, "--repeat", "2", "--output", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("No chart: matplotlib, which draws ")
    done = call("report", out)
    assert done.returncode == 2
    assert "hint: install matplotlib; the controller image has none" in done.stderr


def test_a_missing_or_empty_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """Fio would fail in every run; with --size the file is created."""
    (tmp_path / "empty.img").touch()
    for name, problem in (("new.img", "does not exist"), ("empty.img", "is empty")):
        done = call("measure", "--on", tmp_path / name, "--output", tmp_path / "out")
        assert done.returncode == 2
        assert done.stderr.startswith(f"Checking {tmp_path / name}\n")
        assert f"has no size, and {tmp_path / name} {problem}" in done.stderr
        assert "--set size=1g" in done.stderr
        assert not (tmp_path / "out").exists()
    (tmp_path / "old.img").write_bytes(bytes(2 << 20))
    both = f"{tmp_path / 'old.img'}:{tmp_path / 'new.img'}"
    done = call("measure", "--on", both, "--size", "4m", "--dry-run", "--allow-destroy", both)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if " does not exist" in line]
    new = tmp_path / "new.img"
    assert notes == [f"note: {new} does not exist: the runs create it, up to 2 MiB"]
    (tmp_path / "link").symlink_to(tmp_path)
    linked = tmp_path / "link" / "new.img"
    done = call("measure", "--on", linked, "--size", "4m", "--dry-run")
    assert f"note: {linked} does not exist: the runs create it, up to 4 MiB" in done.stderr


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("nbd+unix:///?socket=/nowhere", "No such file or directory"),
        ("nbd://127.0.0.1:1/disk", "Connection refused"),
    ],
)
def test_an_export_without_a_server_is_refused_before_anything_runs(
    uri: str, reason: str, tmp_path: Path
) -> None:
    """The reason is in the message, and no folder is left."""
    done = call("measure", "--on", uri, "--output", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"{uri} cannot be reached from local: {reason}" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_permission_to_overwrite_something_else_is_an_error(tmp_path: Path) -> None:
    """A misspelt device must not look as if it had been allowed."""
    (tmp_path / "data").mkdir()
    arguments = ("measure", "--on", tmp_path / "data", "--dry-run", "--allow-destroy")
    done = call(*arguments, "/dev/sdX")
    assert done.returncode == 2
    assert "--allow-destroy /dev/sdX is not a target of this campaign" in done.stderr
    assert f"its targets are: {tmp_path / 'data'}" in done.stderr
    assert call(*arguments, tmp_path / "data/f").returncode == 0


@pytest.mark.slow
def test_a_volume_named_twice_is_compared_with_itself(tmp_path: Path) -> None:
    """A against A shows what can be seen: two arms in blocks, on one file that is filled once."""
    (tmp_path / "x").mkdir()
    options = ("--on", tmp_path / "x", "--on", tmp_path / "x", *BRIEF, "--output", tmp_path / "out")
    done = call("measure", *options)
    assert done.returncode == 0, done.stderr
    opened = volbench.open_campaign(tmp_path / "out")
    summary = opened.summary()
    assert list(summary.loc[summary["phase"] == "precondition", "job"]) == ["fill-a"]
    assert "shared-limit" not in set(opened.frame("findings")["rule"])
    assert "Intervals: volbench compare " in done.stdout
    assert done.stdout.startswith("a and b: 1 workload, three repeats each.")
    assert "3 blocks" in call("compare", tmp_path / "out", "--wide").stdout


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (["/dev/sdb", "/dev/nvme0n1"], ["-sdb", "-nvme0n1"]),
        (["/mnt/a/data", "/mnt/b/data"], ["-a-data", "-b-data"]),
        (["/a/b/c/d/e", "/x/b/c/d/e"], ["-a", "-b"]),
    ],
)
def test_jobs_are_named_by_the_ends_of_paths(targets: list[str], names: list[str]) -> None:
    """Paths that only differ far from their ends have letters."""
    roles = dict(zip("ab", targets, strict=False))
    assert [f"-{name}" for name in target_names(roles).values()] == names


@pytest.mark.slow
def test_a_disk_is_measured_for_an_application(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """The test for etcd is IBM's, with the threshold of etcd's FAQ; its scratch file is removed."""
    out = tmp_path / "out"
    arguments = ["run", "etcd", "--on", scratch, "--yes", "--output", out]
    done = volbench(*arguments, "--repeat", "1", "--set", "size=46000")
    assert done.returncode in {0, 10}, done.stderr
    assert "wal.fdatasync_p99 < 10ms" in done.stdout
    job = next((out / "runs").glob("*/job.fio")).read_text()
    for line in ("rw=write", "ioengine=sync", "direct=0", "bs=2300", "fdatasync=1", "size=46000"):
        assert line in job.splitlines()
    assert not list(scratch.rglob("*wal*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "name"), [("data2/", "data3"), ("disk.img", "dsik.img"), ("v.bin", "v.bim")]
)
def test_a_new_file_with_a_name_that_may_be_misspelt_is_refused(
    tmp_path: Path, there: str, name: str
) -> None:
    """A typo must not measure another disk; --allow-destroy names a new file on purpose."""
    path = tmp_path / there
    path.mkdir() if there.endswith("/") else path.write_bytes(bytes(4096))
    arguments = ("measure", "--on", tmp_path / name, "--size", "4m", "--dry-run")
    done = call(*arguments)
    assert done.returncode == 3
    assert f"{tmp_path / name} does not exist, but {tmp_path}/{there} does" in done.stderr
    assert f"--allow-destroy {tmp_path / name}" in done.stderr
    assert call(*arguments, "--allow-destroy", tmp_path / name).returncode == 0


@pytest.mark.parametrize(("there", "name"), [("a.img", "b.img"), ("disk1.img", "disk2.img")])
def test_a_new_file_beside_others_is_made(tmp_path: Path, there: str, name: str) -> None:
    """Another file of a series, or of one letter, is no typo."""
    (tmp_path / there).write_bytes(bytes(4096))
    assert call("measure", "--on", tmp_path / name, "--size", "4m", "--dry-run").returncode == 0


def test_a_permission_may_be_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--allow-destroy takes the path that --on takes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk.img").write_bytes(bytes(4 << 20))
    arguments = ("measure", "--on", "disk.img", "--rw", "randwrite", "--dry-run")
    assert call(*arguments).returncode == 3
    assert call(*arguments, "--allow-destroy", "disk.img").returncode == 0


def test_values_given_one_by_one_are_all_measured(tmp_path: Path) -> None:
    """Most tools take the last of repeated options, which would leave out workloads unsaid."""
    each = ("--rw", "randread", "--rw", "read", "--bs", "4k,16k", "--bs", "64k", "--repeat", "1")
    done = call("measure", "--on", tmp_path, "--dry-run", *each)
    assert done.returncode == 0, done.stderr
    assert "6 of them measured" in done.stdout + done.stderr
