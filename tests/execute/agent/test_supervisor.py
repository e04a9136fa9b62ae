"""Supervised programs: started once, seen through to their end, and never mistaken for another."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import Disks
from tests.waiting import Started, until, until_written
from volbench.execute.agent import processes, supervisor, watch
from volbench.execute.agent.agent_error import AgentError

Event = watch.ProgramEvent


@pytest.fixture(name="disks")
def _disks(tmp_path: Path) -> Iterator[Disks]:
    disks = Disks(tmp_path.resolve())
    yield disks
    disks.close()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    supervisor.send_signal(str(tmp_path / ".c"), signal.SIGKILL)


def launch(folder: Path, *argv: str, **order: object) -> supervisor.Launched:
    """Start a program in a folder."""
    order = {"longest_s": 300.0, **order}
    paths = {"cwd": str(folder), "stderr": str(folder / "err"), "control": str(folder / ".c")}
    return supervisor.launch(argv=list(argv), **{**paths, **order})  # type: ignore[arg-type]  # orders of many types


def events(folder: Path, **known: object) -> list[Event]:
    """Return all that happens to a program until its end."""
    pushed = watch.watch(str(folder / ".c"), **known)  # type: ignore[arg-type]  # orders of many types
    return [event for event in pushed if event]


def merged(pushed: list[Event], name: str) -> str:
    """Return all text of one kind."""
    return "".join(event.text for event in pushed if event.kind == name)


def test_program_runs_in_its_folder_with_its_environment(folder: Path) -> None:
    """Output, standard error, exit status and secrets are those of the program itself."""
    script = 'pwd; echo "${#KEY} $LC_ALL $TMPDIR"; echo bad >&2; exit 3'
    reply = launch(folder, "sh", "-c", script, environment={"KEY": "a-secret"})
    assert not reply.is_earlier
    pushed = events(folder)
    assert merged(pushed, "output") == f"{folder}\n8 C /proc/self/cwd\n"
    assert (folder / "err").read_text() == "bad\n"
    assert pushed[-1] == Event("status", number=3)
    assert "a-secret" not in "".join(
        path.read_text() for path in folder.rglob("*") if path.is_file()
    )


def test_second_launch_starts_nothing(folder: Path) -> None:
    """A request whose reply was lost is repeated."""
    first = launch(folder, "sh", "-c", "echo x >>hits; sleep 60")
    assert launch(folder, "sh", "-c", "echo x >>hits") == first._replace(is_earlier=True)
    until_written(folder / "hits", "\n")
    assert (folder / "hits").read_text() == "x\n"


CUT_OFF = """
import os, subprocess, sys
from volbench.execute.agent import supervisor
supervisor.{name} = lambda *_arguments: os._exit(1)
supervisor.launch(
    argv=["true"], cwd=sys.argv[1], stderr=sys.argv[1] + "/err", control=sys.argv[1] + "/.c",
    longest_s=30.0,
)
"""
"""A launch whose agent ends in the middle."""


@pytest.mark.parametrize("name", ["_claim", "_start_supervisor"])
def test_launch_that_ended_with_its_agent_started_nothing(folder: Path, name: str) -> None:
    """Its program may be started again, and does not count as killed."""
    code = CUT_OFF.format(name=name)
    subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert processes.lifetime(str(folder / ".c")) is None
    assert not launch(folder, "true").is_earlier
    assert processes.lifetime(str(folder / ".c")) is not None
    assert events(folder)[-1] == Event("status", number=0)
    assert launch(folder, "false").is_earlier


SLOW_START = """
import sys
from volbench.execute.agent import supervisor
slow = (
    "import os, select, sys, time; select.select([0], [], []); open('begun', 'w').close()\\n"
    "while not os.path.exists('go'): time.sleep(0.05)\\n"
    "from volbench.execute.agent import supervisor as s; s.main([])"
)
cwd = "import os, sys; os.chdir(sys.argv[1]);"
supervisor.command = lambda *_words: [sys.executable, "-c", cwd + slow, sys.argv[1]]
supervisor.launch(
    argv=["true"], cwd=sys.argv[1], stderr=sys.argv[1] + "/err", control=sys.argv[1] + "/.c",
    longest_s=300.0,
)
"""
"""An agent that is killed while it waits for a supervisor that starts slowly."""


def test_watch_waits_for_a_start_that_is_under_way(folder: Path) -> None:
    """A supervisor that Python starts slowly outlives the agent that asked for it."""
    with Started([sys.executable, "-c", SLOW_START, str(folder)]) as agent:
        until((folder / "begun").exists)
        agent.kill()
    assert supervisor.is_supervised(str(folder / ".c"))
    assert supervisor.pid_of(str(folder / ".c")) == 0
    assert processes.lifetime(str(folder / ".c")) is not None
    assert launch(folder, "false") == supervisor.Launched(0, is_earlier=True)
    (folder / "go").touch()
    assert events(folder)[-1] == Event("status", number=0)


@pytest.mark.parametrize("program", ["volbench-no-such", "/no/such"])
def test_missing_program_can_be_installed_meanwhile(folder: Path, program: str) -> None:
    """Nothing counts as started."""
    with pytest.raises(AgentError, match="no such program"):
        launch(folder, program)
    assert not supervisor.was_launched(str(folder / ".c"))
    launch(folder, "true")
    assert events(folder)[-1] == Event("status", number=0)


def test_program_survives_who_launched_it(folder: Path) -> None:
    """Neither SIGHUP nor SIGKILL of the whole session of the launch reaches it."""
    code = (
        "import sys, os, signal; from volbench.execute.agent import supervisor as s; "
        "s.launch(argv=['sh', '-c', 'sleep 1; echo done; exit 4'], cwd=sys.argv[1], "
        "stderr=sys.argv[1] + '/err', control=sys.argv[1] + '/.c', longest_s=30.0); "
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "os.killpg(0, signal.SIGHUP); os.killpg(0, signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], start_new_session=True, check=False)
    pushed = events(folder)
    assert (merged(pushed, "output"), pushed[-1]) == ("done\n", Event("status", number=4))


READY_FIRST = """
import os, sys
from volbench.execute.agent import supervisor as s
check = s._Supervisor._check_deadline
s._Supervisor._check_deadline = lambda own: os.path.exists(sys.argv[1]) and check(own)
s.main([])
"""
"""A supervisor that looks at the deadline once the program has set its traps."""


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("trap 'echo interrupted; exit 5' INT; : >ready; sleep 60 & wait", ("interrupted\n", 5)),
        ("trap '' INT; : >ready; sleep 62", ("", -signal.SIGKILL)),
    ],
)
def test_deadline_is_enforced_without_a_controller(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, end: tuple[str, int]
) -> None:
    """SIGINT comes first, so that fio can write its results; what ignores it is killed."""
    command = [sys.executable, "-c", READY_FIRST, str(folder / "ready")]
    monkeypatch.setattr(supervisor, "command", lambda *_words: command)
    launch(folder, "bash", "-c", script, longest_s=0.5 if end[0] else -supervisor.KILL_AFTER_S)
    pushed = events(folder)
    assert (merged(pushed, "output"), pushed[-1]) == (end[0], Event("status", number=end[1]))


@pytest.mark.root
@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("fallocate -l 80m dump", "less than 32 MiB were free beside its results, so it was ended"),
        (
            "truncate -s 17g dump",
            "its results took more than 16 GiB, so it was ended: record fewer logs",
        ),
        ("head -c 200m /dev/zero > dump", ""),
    ],
)
def test_a_program_that_fills_the_disk_of_its_results_is_ended(
    disks: Disks, script: str, ended: str
) -> None:
    """Or does not end to write; its end is recorded on a full disk too. One full before goes on."""
    small = disks.mount("none", "-t", "tmpfs", "-o", "size=100m")
    launch(small, "bash", "-c", f"echo bad >&2; {script}; sleep 100000")
    assert events(small)[-1] == Event("status", number=-signal.SIGINT)
    assert not ended or (small / "err").read_text() == f"bad\n\nvolbench: {ended}\n"
    if not ended:
        shutil.rmtree(small / ".c")
        launch(small, "bash", "-c", "sleep 3; exit 5")
        assert events(small)[-1] == Event("status", number=5)


def test_kill_reaches_children_in_other_groups(folder: Path) -> None:
    """They are found by their environment, as the jobs that fio forks are."""
    launch(folder, "bash", "-c", "setsid sleep 61 & echo $!; wait")
    until(lambda: (folder / ".c/out").read_text() != "")
    child = int((folder / ".c/out").read_text())
    supervisor.send_signal(str(folder / ".c"), signal.SIGKILL)
    assert events(folder)[-1] == Event("status", number=-9)
    until(lambda: supervisor.ticks_of(child) == 0)


def change_state(folder: Path, **values: object) -> None:
    """Edit what is recorded of a program."""
    path = folder / ".c/state"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_reused_pid_is_not_taken_for_the_program(folder: Path) -> None:
    """A process with the same number that started at another time gets no signal."""
    launch(folder, "true")
    events(folder)
    time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # the kernel counts starts in ticks
    with Started(["sleep", "60"], start_new_session=True) as other:
        try:
            change_state(folder, pid=other.pid)
            supervisor.send_signal(str(folder / ".c"), signal.SIGTERM)
            time.sleep(0.1)
            assert other.poll() is None
        finally:
            other.kill()


def test_lost_and_ended_programs_are_distinguished(folder: Path) -> None:
    """A restart of the machine, a kill together with the supervisor, and no start at all."""
    assert events(folder) == [Event("lost", "none")]
    launch(folder, "sleep", "60")
    state = supervisor.read_json(str(folder / ".c/state"))
    os.kill(supervisor.number_in(state, "supervisor_pid"), signal.SIGKILL)
    assert supervisor.is_running(str(folder / ".c"))
    supervisor.send_signal(str(folder / ".c"), signal.SIGKILL)
    until(lambda: not supervisor.is_running(str(folder / ".c")))
    assert events(folder)[-1] == Event("lost", "died")
    change_state(folder, boot="another")
    assert events(folder) == [Event("lost", "reboot")]


def test_watch_continues_where_an_earlier_one_ended(folder: Path) -> None:
    """No byte is missing or doubled, not even of a character that was cut."""
    launch(folder, "printf", "a\\303\\244b\\377c")
    pushed = events(folder)
    assert merged(pushed, "output") == "a\u00e4b\ufffdc"
    assert [event.number for event in pushed if event.kind == "output"] == [6]
    assert merged(events(folder, output_bytes=3), "output") == "b\ufffdc"


def test_first_lines_of_files_are_followed(folder: Path) -> None:
    """Each change is pushed, under the number of the file."""
    script = "echo 1 >a; until [ -e go ]; do sleep 0.1; done; echo 2 >a; echo x >b"
    launch(folder, "sh", "-c", script)
    lines = []
    for event in watch.watch(str(folder / ".c"), followed=[str(folder / name) for name in "ab"]):
        if event and event.kind == "line":
            lines.append((event.number, event.text))
            (folder / "go").touch()
    assert lines == [(0, "1"), (0, "2"), (1, "x")]


def test_samples_surround_the_program(folder: Path) -> None:
    """The first one is of the host at rest, the last one is taken when the program has ended."""
    device = Path("/proc/diskstats").read_text(encoding="ascii").split()[2].replace("/", "!")
    sampling = {"devices": [device], "interval_s": 0.1, "is_tail_followed": False}
    script = 'until [ "$(grep -c "^T " .c/samples)" -gt 4 ]; do sleep 0.1; done'
    launch(folder, "sh", "-c", script, sampling=sampling)
    samples = merged(events(folder), "samples")
    marks = [line for line in samples.splitlines() if line.startswith("!")]
    assert marks == ["! started", "! ended", "! tail none: no dirty pages left"]
    before, after = samples.split("\n! started\n")
    assert before.count("\nT ") == 1
    assert f" {device.replace('!', '/')} " in before
    during, after = after.split("\n! ended\n")
    times_s = [float(line.split()[2]) for line in during.splitlines() if line[:2] == "T "]
    assert 3 < len(times_s) < (times_s[-1] - times_s[0]) / 0.1 + 2.1
    assert after.startswith("T ")


def test_sampling_is_stopped_on_request(folder: Path) -> None:
    """A user need not wait for a write-back that never ends."""
    sampling = {"devices": [], "interval_s": 0.1, "is_tail_followed": True}
    launch(folder, "true", sampling=sampling)
    supervisor.stop_sampling(str(folder / ".c"))
    assert "\n! tail " in merged(events(folder), "samples")


def test_an_attached_program_ends_with_its_controller(folder: Path) -> None:
    """No resume can take it over; when it ended tells which files are its own."""
    code = (
        "import sys; from volbench.execute.agent import supervisor as s; "
        "print(s.launch(argv=['sleep', '60'], cwd=sys.argv[1], stderr=sys.argv[1] + '/err', "
        "control=sys.argv[1] + '/.c', longest_s=90.0, attached=True, sampling="
        "{'devices': [], 'interval_s': 0.1, 'is_tail_followed': False}).pid)"
    )
    pid = int(
        subprocess.run(
            [sys.executable, "-c", code, str(folder)], check=True, capture_output=True, text=True
        ).stdout
    )
    until((folder / ".c" / "end").exists)
    assert not Path("/proc", str(pid)).exists()
    lived = processes.lifetime(str(folder / ".c"))
    assert lived is not None
    assert lived.began_ns < lived.ended_ns


def test_a_start_that_fails_after_its_controller_is_gone_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resume may have moved the folder of the run; nobody else removes the control folder."""
    monkeypatch.setattr(supervisor, "ticks_of", lambda _pid: -1)  # of a process that is gone
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # of the controller
    with pytest.raises(AgentError, match="cannot be written"):
        launch(folder, "true", stderr=str(folder / "moved" / "err"), attached=True)
    until(lambda: not (folder / ".c").exists())


@pytest.mark.root
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"number": "7:9999"}, "number "),
        ({"size_bytes": 512}, "size "),
        ({"boot_id": "x"}, "boot"),
        ({"diskseq": "0"}, "diskseq "),
        ({"node": "/dev/null"}, "node"),
    ],
)
def test_device_is_held_unless_it_was_replaced(
    folder: Path, disks: Disks, change: dict[str, object], reason: str
) -> None:
    """The program inherits the descriptor; it is not started on another device."""
    hold = {**held(disks.attach()), **change}
    launch(folder, "sh", "-c", "ls -l /proc/$$/fd", hold=[hold])
    pushed = events(folder)
    if reason:
        assert pushed[-1] == Event("status", number=supervisor.NOT_STARTED)
        assert (folder / "err").read_text().startswith(f"volbench-hold: {reason}")
    else:
        assert f"-> {hold['node']}" in merged(pushed, "output")


@pytest.mark.root
def test_exclusive_hold_keeps_others_out(folder: Path, disks: Disks) -> None:
    """The device can be opened exclusively again once the program has ended."""
    device = disks.attach()
    launch(folder, "sleep", "60", hold=[{**held(device), "exclusive": True}])
    with pytest.raises(OSError, match="busy"):
        os.open(device, os.O_RDONLY | os.O_EXCL)
    supervisor.send_signal(str(folder / ".c"), signal.SIGKILL)
    events(folder)
    os.close(os.open(device, os.O_RDONLY | os.O_EXCL))


def held(device: str) -> dict[str, object]:
    """Return what is to be held of a device."""
    status = Path(device).stat()
    assert stat.S_ISBLK(status.st_mode)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    facts = Path("/sys/dev/block") / number
    return {
        "node": device,
        "number": number,
        "size_bytes": int((facts / "size").read_text()) * 512,
        "boot_id": supervisor.boot_id(),
        "diskseq": (facts / "diskseq").read_text().strip(),
        "exclusive": False,
    }
