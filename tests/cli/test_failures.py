"""What goes wrong is said clearly, recorded, and never looks like success."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import volbench as volbench_package
from tests.command_line import Volbench, call, settings

TINY = settings("size=4m", "runtime=1s")


def write_profile(folder: Path, text: str) -> Path:
    """Write a profile and return its path."""
    path = folder / "profile.yaml"
    path.write_text(text)
    return path


def test_failed_run_is_recorded_and_the_others_go_on(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """A job that fio fails is kept as failed with fio's own words; exit is 9."""
    profile = write_profile(
        tmp_path,
        "name: mixed\ndefaults: {size: 1m, bs: 4k, ioengine: psync}\n"
        "jobs:\n"
        "  good: {rw: write}\n"
        "  bad: {rw: read, verify: crc32c, verify_fatal: 1, verify_only: 1}\n"
        "  last: {rw: randwrite}\n",
    )
    out = tmp_path / "out"
    done = volbench("run", profile, "--on", scratch, "--output", out)
    assert done.returncode == 9, done.stderr
    assert "1 of 3 runs failed" in done.stderr
    campaign = volbench_package.open_campaign(out)
    notes = {run: str(note.state) for run, note in campaign.runs.items()}
    assert list(notes.values()) == ["finished", "failed", "finished"]
    reason = campaign.runs["002-bad-r1"].reason
    assert "verify" in reason or "84" in reason
    shown = volbench("show", out)
    assert "failed" in shown.stdout


@pytest.mark.parametrize("words", ["profile import p.fio", "hosts --inventory p.fio"])
def test_a_pipe_that_nobody_writes_is_refused(
    tmp_path: Path, volbench: Volbench, words: str
) -> None:
    """As a job file or an inventory; volbench would wait for its writer without end."""
    os.mkfifo(tmp_path / "p.fio")
    done = volbench(*words.split())
    assert (done.returncode, "p.fio is a pipe" in done.stderr) == (2, True)


def test_the_reason_of_a_failed_run_is_printed_once(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """When the run ends; a quiet verb, which does not print that, has it below the table."""
    job = "name: strict\njobs: {bad: {rw: write, size: 1m, bs: 4k, max_latency: 1us}}\n"
    profile = write_profile(tmp_path, job)
    for words, streams in ((), (True, False)), (("-q",), (False, True)):
        out = tmp_path / f"out{len(words)}"
        done = volbench("run", profile, "--on", scratch, "--output", out, *words)
        assert done.returncode == 9
        found = ["fio ended with exit status 1" in text for text in (done.stderr, done.stdout)]
        assert tuple(found) == streams


def test_deadline_ends_a_run_that_is_late(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """A job without end is stopped at its deadline, recorded as failed, and fio is gone."""
    job = "slow: {rw: write, ioengine: psync, size: 1m, bs: 4k, exec_prerun: sleep 60}"
    profile, out = write_profile(tmp_path, f"name: late\njobs:\n  {job}\n"), tmp_path / "out"
    late = ("--grace", "1s", "--allow-exec")
    done = volbench("run", profile, "--on", scratch, "--output", out, *late)
    assert done.returncode == 9
    reason = volbench_package.open_campaign(out).runs["001-slow-r1"].reason
    assert "so it was stopped" in reason
    assert list(scratch.iterdir()) == []


def test_foreign_file_is_never_overwritten(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """A file that was there before volbench is refused, and its content stays."""
    foreign = scratch / "volbench-scratch"
    foreign.write_text("precious")
    done = volbench("run", "quick", "--on", scratch, "--output", tmp_path / "out", *TINY)
    assert done.returncode == 3, done.stderr
    assert str(foreign) in done.stderr
    assert "--allow-destroy" in done.stderr
    assert foreign.read_text() == "precious"


@pytest.mark.parametrize("name", ["cpus_allowed", "verify_async_cpus"])
def test_a_missing_cpu_is_reported_before_the_run(
    name: str, tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Fio counts CPUs from 0: the message says how many there are and offers the fix."""
    done = volbench(
        "run", "quick", "--on", scratch, "--output", tmp_path / "out", "--set", f"{name}=4096"
    )
    assert done.returncode == 2
    assert f"--set {name}=0" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", ["profile import big.fio", "profile check big.yaml", "status"])
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, words: str) -> None:
    """A bounded part of it is read; an output that ends with a slash is a folder."""
    assert call("profile", "list", "-o", f"{tmp_path}/o/").returncode == 0
    assert len([*(tmp_path / "o").iterdir()]) == 1
    name = words.rpartition(" ")[2] if " " in words else "volbench.toml"
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)
    done = call(*words.split(), cwd=tmp_path)
    assert (done.returncode, "is larger than" in done.stderr) == (2, True), done.stderr


def test_dry_run_touches_nothing(tmp_path: Path, scratch: Path, volbench: Volbench) -> None:
    """--dry-run shows the plan in order, and leaves neither folder nor file."""
    out = tmp_path / "out"
    done = volbench("run", "quick", "--on", scratch, "--output", out, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "8 runs" in done.stdout
    assert not out.exists()
    assert list(scratch.iterdir()) == []


@pytest.mark.root
def test_full_disk_on_the_controller_keeps_what_is_finished(
    tmp_path: Path, scratch: Path, volbench: Volbench
) -> None:
    """Without room for results the campaign ends, finished runs are shown, nothing is left."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", small], check=True)
    try:
        done = volbench("run", "quick", "--on", scratch, "--output", small / "c", *TINY)
        assert done.returncode == 7, done.stderr
        assert "No space left" in done.stderr
        assert "fill" in done.stdout
        states = [str(n.state) for n in volbench_package.open_campaign(small / "c").runs.values()]
        assert states[0] == "finished"
        assert states[-1] != "finished"
        assert list(scratch.iterdir()) == []
        assert "failed" in states
        assert "hint: free some space there" in done.stderr
        hint = volbench("status", small / "c").stderr
        assert f"less than 32 MiB are free on {small}: `du -xhd1 {small} | sort -h`" in hint
        assert f"volbench resume {small}/c; --retry-failed also repeats" in hint
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        again = volbench("resume", small / "c", "--retry-failed")
        assert again.returncode == 0, again.stderr
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize(
    ("arguments", "words", "hint"),
    [
        (("shwo",), "no such command 'shwo'", "did you mean `show`?"),
        (("run", "quick", "--on", "dta=/tmp"), "role 'dta'", "did you mean --on data=/tmp?"),
        (("measure", "--on", "dta=/tmp"), "names the role 'dta'", "write --on /tmp"),
        (("show", "--fromat", "json", "."), "'--fromat'", "did you mean `--format`?"),
        (("--on", "data"), "no such option '--on'", "volbench COMMAND --on"),
        (("--bogus", "show"), "no such option '--bogus'", "see volbench --help"),
        (("run", "quick", "--repeat", "0"), "--repeat must be between 1 and 10000, not 0", "see"),
        (("plot", "iops", ".", "--width", "x"), "--width must be a number, not 'x'", "see"),
        (("measure", "."), "missing option '--on'", "did you mean `volbench measure --on .`?"),
        (("run", "quick", "."), "there is no profile '.'", "to measure ., write --on ."),
        (("run", "quick", "--device", "."), "'--device'", "did you mean `--on`?"),
        (
            ("run", "quick", "/dta"),
            "there is no profile '/dta'",
            "to measure /dta, write --on /dta",
        ),
        (("run", "quick", "--until", "5%"), "'--until'", "`--set repeat.until=5%`"),
        (("run", "--", "fio"), "a command of fio needs a job: --name=NAME", "run -- fio --name="),
        (("hosts", "."), "extra argument", "did you mean `volbench hosts --on .`?"),
        (("show", "--csv"), "'--csv'", "did you mean `--format csv`?"),
        (("show", "--excel"), "'--excel'", "`volbench export DIR --format xlsx -o FILE`?"),
        (("plot", "iops", ".", "--png"), "'--png'", "did you mean `--output chart.png`?"),
        (
            ("report", ".", "--pdf"),
            "'--pdf'",
            "did you mean `volbench plot DIR --output chart.pdf`?",
        ),
        (("report", ".", "-o", "page.pdf"), "page.pdf: a report is an HTML page", "page.html"),
        (("hosts", "--allow-destroy"), "'--allow-destroy'", "see volbench hosts --help"),
        (("/dev/null",), "'/dev/null'", "did you mean `volbench measure --on /dev/null`?"),
        (("quick",), "'quick'", "did you mean `volbench run quick --on TARGET`?"),
        (("stop",), "'stop'", "did you mean `volbench status"),
        (("measure", "--randread"), "'--randread'", "did you mean `--rw PATTERN`?"),
        (("run", "./absent.yaml"), "'./absent.yaml'", "look at: ls ."),
        (("plot",), "missing argument 'WHAT'", "for example: volbench plot results/quick"),
        (("plot", "bars3d", "."), "there is no chart 'bars3d'", "volbench plot iops --as towers"),
        (("show", "/etc/passwd"), "there is no campaign in /etc/passwd", "json+"),
        (("measure", "--on", ".", "--size", "1.5"), "not a whole number", "like 1.5g or 1536"),
        (("check", "not-there"), "there is no file or folder 'not-there'", "volbench status"),
        (("run", "disk.fio", "--on", "."), "disk.fio: No such file", "profile list"),
        (("warmup", "--on", "x", "--size", "5q"), "--size: '5q'", "use k, m, g"),
        (("plot", "iops", "x" * 300), "cannot be examined: File name too long", "permissions"),
        (("run", "quick", "--on", "x" * 300), "examined: File name too long", "permissions"),
    ],
)
def test_every_mistake_on_the_command_line_has_a_hint(
    arguments: tuple[str, ...], words: str, hint: str, volbench: Volbench
) -> None:
    """Exit code 2, what is wrong in a line, and what to type instead."""
    done = volbench(*arguments)
    assert done.returncode == 2, done.stderr
    message, advice = done.stderr.splitlines()
    assert message.startswith("volbench: ")
    assert words in message
    assert advice.startswith("  hint: ")
    assert hint in advice


@pytest.mark.parametrize("words", ["show ../x", "run quick --on . --dry-run"])
def test_a_removed_current_folder_is_said(tmp_path: Path, words: str) -> None:
    """Python itself fails without one."""
    argv = ["bash", "-c", f"rmdir $PWD; {sys.executable} -P -m volbench {words}"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "volbench: the current folder was removed\n  hint: " in done.stderr


def test_messages_contain_no_control_characters(tmp_path: Path, volbench: Volbench) -> None:
    """What came from a file or a name is printed without what a terminal would obey."""
    path = tmp_path / "job.fio"
    path.write_text("[j]\n\x1b[2J=1\n")
    done = volbench("profile", "import", path)
    assert done.returncode == 2
    assert "no option" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("verb", ["show", "import", "run"])
def test_arguments_that_are_not_text_are_refused(volbench: Volbench, verb: str) -> None:
    """Bytes that are not UTF-8 reach no plan, and end no verb with a traceback."""
    done = volbench(verb, "quick", "--output", "out\udcff")
    assert done.returncode == 2
    assert r"'out\udcff' is not valid UTF-8" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("profile", "check", "x.yaml"),
        ("hosts", "--list", "--inventory", "x.yaml"),
        ("run", "x.fio", "--on", ".", "--dry-run"),
        ("status",),
    ],
)
def test_a_binary_file_is_named_plainly(
    volbench: Volbench, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """What it is not, and where, in words of a user instead of Python's."""
    name = next((word for word in arguments if word.startswith("x.")), "volbench.toml")
    (tmp_path / name).write_bytes(b"jobs\xaa\xff")
    done = volbench(*arguments)
    assert done.returncode == 2
    words = "cannot be read: it is not UTF-8 text (invalid start byte at byte 4)"
    assert f"{name} {words}" in done.stderr
