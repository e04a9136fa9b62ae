"""Commands and options of fio on the command line of volbench."""

import json
import re
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.engine.conftest import Disks
from volbench.api.many_campaigns import open_campaign
from volbench.store.archive import read_campaign

READS = ("--name=reads", "--rw=randread", "--bs=4k", "--size=1m")


def test_a_command_of_fio_is_a_campaign(
    volbench: Volbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in the current directory, keeps the command, and is named after its first job."""
    argv = ["volbench", "run", "--", "fio", *READS, "--eta=never"]
    monkeypatch.setattr("sys.argv", argv)
    done = volbench(*argv[1:])
    assert done.returncode == 0, done.stderr
    assert "left out: --eta" in done.stderr
    (folder,) = (tmp_path / "volbench-results").iterdir()
    assert folder.name.startswith("reads-")
    campaign = read_campaign(folder)[1].campaign
    assert [run.job for run in campaign.runs] == ["reads"]
    assert campaign.runs[0].volume.target == str(tmp_path)
    assert campaign.command[-5:] == (*READS, "--eta=never")


def test_a_quiet_run_prints_one_line(volbench: Volbench, tmp_path: Path) -> None:
    """Rate, p99, verdict and folder; the JSON of fio is copied to where the command wants it."""
    # A cached rate that was asked for is valid, seen by the device's samples or not
    own = ("--direct=0", "--output=fio.json", "--output-format=json")
    done = volbench("run", "-q", "-o", "out", "--expect", "iops>1", "--", "fio", *READS, *own)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert re.search(r"randread 4k.* IOPS, .*p99 .*\. 1 pass; out$", line), line
    assert json.loads((tmp_path / "fio.json").read_text())["jobs"][0]["jobname"] == "reads"
    (tmp_path / "fio.json").write_text("precious")
    again = volbench("run", "--", "fio", *READS, *own)
    assert again.returncode == 3, again.stderr
    nameless = volbench("run", "--", "fio", "--rw=read", "--size=1m")
    assert "volbench: fio: there is no job section (name one" in nameless.stderr
    assert (tmp_path / "fio.json").read_text() == "precious"


def test_a_profile_is_printed_as_commands(volbench: Volbench, scratch: Path) -> None:
    """One line a job, for plain fio."""
    done = volbench("profile", "render", "quick", "--on", scratch, "--as-commands")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert all(line.startswith("fio --name=global ") for line in lines)
    again = volbench("run", "--dry-run", "--json", lines[1])
    assert json.loads(again.stdout)[0]["job"] == "randread-qd1"


@pytest.mark.parametrize(
    "words",
    [("--", "sudo", "fio", *READS), ("fio", *READS), (f"LC_ALL=C /usr/bin/fio {' '.join(READS)}",)],
)
def test_a_command_is_taken_as_it_is_pasted(volbench: Volbench, words: tuple[str, ...]) -> None:
    """With or without a prompt or a path, in words or in one word."""
    done = volbench("run", "--dry-run", "--json", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["job"] == "reads"


@pytest.mark.root
def test_the_disk_of_a_command_is_refused_until_it_may_be_overwritten(
    volbench: Volbench, disks: Disks
) -> None:
    """A pasted command is guarded as a job file is, and the error has the line to add."""
    loop_device = disks.attach()
    command = ("--", "fio", f"--filename={loop_device}", "--rw=write", "--bs=1m", "--name=fio")
    done = volbench("run", *command)
    assert done.returncode == 3
    assert f"--allow-destroy {loop_device}" in done.stderr
    allowed = volbench("run", "--dry-run", "--allow-destroy", loop_device, *command)
    assert allowed.returncode == 0, allowed.stderr


@pytest.mark.root
def test_sections_on_several_disks_are_one_run(
    volbench: Volbench, tmp_path: Path, disks: Disks
) -> None:
    """Each disk needs consent and has a row of its own, and a total has all of them."""
    both = [disks.attach(), disks.attach()]
    names = [word for disk in both for word in (f"--name=on-{disk[5:]}", f"--filename={disk}")]
    command = ("--", "fio", "--rw=write", "--bs=64k", "--size=4m", *names)
    consent = [word for disk in both for word in ("--allow-destroy", disk)]
    refused = volbench("run", *consent[:2], *command)
    assert refused.returncode == 3
    assert f"--allow-destroy {both[1]}" in refused.stderr
    done = volbench("run", "-o", "out", *consent, *command)
    assert done.returncode == 0, done.stderr
    assert "2 sections run at the same time on 2 volumes" in done.stderr
    runs = read_campaign(tmp_path / "out")[1].campaign.runs
    assert [run.volume.target for run in runs] == both
    assert len({run.step for run in runs}) == len({run.job for run in runs}) == 1
    (total,) = open_campaign(tmp_path / "out").frame("aggregate").to_dict("records")
    assert (total["clients"], total["clients_planned"]) == (2, 2)
    assert all(Path(disk).read_bytes()[: 4 << 20].strip(b"\0") for disk in both)


def test_options_of_fio_override_those_of_each_job(volbench: Volbench, scratch: Path) -> None:
    """As options of run they hold in every job, flags alone too."""
    options = ("--iodepth", "16", "--runtime=5s", "--size", "64m", "--time_based", "--blocksize=8k")
    done = volbench("run", "quick", "--on", scratch, *options, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {row["options"]["iodepth"] for row in rows} == {"16"}
    assert {row["options"]["bs"] for row in rows} == {"8192"}
    assert "in each job: iodepth=16, runtime=5s, size=64m, time_based=1, bs=8k" in done.stderr
    wrong = volbench("run", "quick", "--on", scratch, "--iodpth", "16")
    assert wrong.returncode == 2
    assert "--iodepth" in wrong.stderr
    measured = volbench("measure", "--on", scratch, "--direct", "--dry-run")
    assert measured.returncode == 0, measured.stderr


def test_sections_of_a_job_file_run_one_after_the_other(volbench: Volbench, tmp_path: Path) -> None:
    """Without a stonewall they run together, which is said; with --section each by itself."""
    (tmp_path / "j.fio").write_text("[global]\nsize=1m\n[a]\nrw=read\n[b]\nrw=write\n[c]\nbs=8k\n")

    def jobs(*options: str) -> list[str]:
        done = volbench("run", "j.fio", *options, "--dry-run", "--json")
        assert done.returncode == 0, done.stderr
        assert ("3 sections run at the same time" in done.stderr) is not bool(options)
        return [row["job"] for row in json.loads(done.stdout)]

    assert jobs() == ["a_b_c"]
    assert jobs("--section", "all") == ["a", "b", "c"]
    assert jobs("--section", "c", "--section", "a") == ["a", "c"]
    missing = volbench("run", "j.fio", "--section", "d", "--dry-run")
    assert missing.returncode == 2
    assert "there is no section 'd'" in missing.stderr


def test_a_job_file_of_a_command_has_its_defaults(volbench: Volbench, tmp_path: Path) -> None:
    """Options of the command are defaults that the file overrides, wherever they stand."""
    (tmp_path / "j.fio").write_text("[a]\nrw=read\nbs=4k\n[b]\nrw=write\n")
    for words in ("j.fio --size=1m --section=b --bs=16k", "--size=1m --section=b --bs=16k j.fio"):
        done = volbench("run", "--dry-run", "--json", "--", "fio", *words.split())
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)
        assert row["options"] == {"rw": "write", "bs": "16384", "size": "1048576"}
    with (tmp_path / "j.fio").open() as stream:
        piped = volbench("profile", "import", "--", "fio", "--size=1m", "-", stdin=stream)
    assert piped.returncode == 0, piped.stderr
    assert "size: 1048576" in piped.stdout


def test_an_existing_file_is_read_in_place(volbench: Volbench, tmp_path: Path) -> None:
    """As plain fio reads it: no file is made beside it."""
    (tmp_path / "disk.img").write_bytes(bytes(1 << 20))
    volbench("run", "-o", "out", "--", "fio", *READS, "--filename=disk.img")
    (job,) = (tmp_path / "out").glob("runs/*/job.fio")
    assert f"directory={tmp_path}\n" in job.read_text()
