"""Supervisor of one program, in a session of its own: it outlives the agent that launched it.

It holds the program's block device, starts the program once its state is recorded, samples the
kernel's counters beside it, ends it at its deadline, and records its end. All state is in the
control folder of the program, where each file appears whole or not at all:

    start/    of the first launch, so that nothing starts twice; its pipe is open as long as that
              launch or the supervisor is alive
    state     boot, pid and start time of the program, and of its supervisor
    out       standard output of the program
    samples   output of the sampler
    end       exit status, negative after a signal
    news      named pipe that tells of changes to those who watch the run
    door      named pipe where all jobs but the first wait for the start
"""

import _signal as signal  # type: ignore[import-not-found]  # loads faster than signal and its enums
import _thread  # loads faster than threading
import contextlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import typing

from volbench.execute.agent import gate
from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.files import (
    OWN_FOLDER,
    first_line,
    free_space,
    read_bytes,
    read_text,
    refuse_foreign,
    remove_work_folder,
    search_path,
    which,
    write_files,
)
from volbench.execute.agent.installed_program import command
from volbench.execute.agent.kernel_sampler import Sampler

NOT_STARTED = 93
"""Exit status of a program that was not started because its device had been replaced."""

CONTROL = "VOLBENCH_CONTROL"
"""Variable that names the control folder in the environment of the program and its children."""

# fio ends after SIGINT once its I/O in flight is completed.
# Noticed by: test_supervisor.py::test_deadline_is_enforced_without_a_controller
KILL_AFTER_S = 30.0
_LAUNCH_S = 30.0  # A busy host starts Python in seconds. Noticed by: test_skew.py
# Between two looks at the deadline and at the controller of an attached program.
_TICK_S, _LEAST_TICK_S = 1.0, 0.05
# Free bytes beside results below which a program is ended, where twice that was free at its start:
# less than the guard leaves beside the files of a run. Noticed by: test_supervisor.py
_RESERVE_BYTES = 32 << 20
_FILLING = b"\nvolbench: less than 32 MiB were free beside its results, so it was ended\n"
_MAX_BYTES = 16 << 30  # Of results: a day of logs of 1,000 jobs. Noticed by: test_supervisor.py
_LARGE = b"\nvolbench: its results took more than 16 GiB, so it was ended: record fewer logs\n"
_SIZED_S = 5.0  # Between two looks at the sizes of results, of which there may be thousands.
_ALIVE = "/alive"
_SECTOR_BYTES = 512  # Unit of /sys/dev/block/*/size, whatever the device's own sector size.
_FETCHED_S = 60.0  # A controller that was cut off for longer has given the host up.
_MAX_SAMPLING_S = 600.0  # After the deadline of the program; longer than the longest write-back.


KEPT_OPEN = {}  # type: dict[str, int]
"""Locked files that programs keep open, by their names: see `locks.announce`."""
KEEPING = _thread.allocate_lock()  # while they change or are passed on


class Launched(typing.NamedTuple):
    """A program that was started."""

    pid: int  # 0 if it ended at once
    is_earlier: bool  # whether an earlier call started it


def launch(  # noqa: PLR0913 - arguments of an operation, each by its name
    *,
    argv: "list[str]",
    cwd: str,
    stderr: str,
    control: str,
    longest_s: float,
    files: "dict[str, str] | None" = None,
    environment: "dict[str, str] | None" = None,
    hold: "list[dict[str, object]] | None" = None,
    gate_s: "float | None" = None,
    sampling: "dict[str, object] | None" = None,
    attached: bool = False,
    temporary: bool = False,
) -> Launched:
    """Start a program under a supervisor, unless an earlier call whose reply was lost has done so.

    Args:
        cwd: its working directory, and TMPDIR.
        control: path of the control folder, which is created.
        files: small files to write before.
        environment: secrets; they are in no file and in no argument list.
        hold: ``node``, ``number``, ``size_bytes``, ``boot_id`` and ``diskseq`` of each block device
            to hold open, and whether that is ``exclusive``.
        gate_s: seconds that it may wait at its start gate; None for no gate. fio reaches the gate
            by ``exec_prerun``, any other program is started by it.
        sampling: ``devices``, ``interval_s``, and ``is_tail_followed``: see `Sampler`.
        attached: whether it ends with this process; its control folder then tells when it did.
        temporary: whether `cwd` is removed when its controller has left it behind.
    """
    # The supervisor works in `cwd`.
    cwd, stderr, control = map(os.path.abspath, (cwd, stderr, control))
    if was_launched(control):
        return Launched(pid_of(control), is_earlier=True)
    refuse_foreign(os.path.dirname(control))
    write_files(files or {})
    program = which(argv[0]) if "/" not in argv[0] else argv[0]
    if program is None or not os.path.exists(os.path.join(cwd, program)):
        raise AgentError("missing", "no such program")
    try:
        alive = _claim(control)
    except OSError as error:
        failure = of_os_error(error)
        raise AgentError(failure.kind, "{}: {}".format(control, failure.message)) from error
    if alive is None:
        return Launched(pid_of(control), is_earlier=True)
    order = {
        "argv": [program, *argv[1:]],
        "cwd": cwd,
        "stderr": stderr,
        "control": control,
        "alive": alive,
        "longest_s": longest_s,
        "environment": environment or {},
        "hold": hold or [],
        "gate_s": gate_s,
        "sampling": sampling,
        "attached": [os.getpid(), ticks_of(os.getpid())] if attached else None,
        "temporary": temporary,
    }
    try:
        reply = _start_supervisor(order)
    except AgentError:
        if not pid_of(control):  # it may be tried again
            shutil.rmtree(control, ignore_errors=True)
        raise
    finally:
        os.close(alive)
    return Launched(reply, is_earlier=False)


def _claim(control: str) -> "int | None":
    """Make a control folder; return its pipe, or None if another launch was first.

    A launch that ended with its agent before there was a program leaves a folder that is replaced.
    """
    if os.path.isdir(control + "/start"):
        gone = tempfile.mkdtemp(prefix="gone.", dir=os.path.dirname(control))
        os.rename(control, gone)
        if was_launched(gone):  # meanwhile
            os.rename(gone, control)
            return None
        shutil.rmtree(gone)
    os.makedirs(control, exist_ok=True)
    refuse_foreign(control)  # somebody may have been faster
    folder = tempfile.mkdtemp(prefix="start.", dir=control)
    for path in control, folder:  # root may have another umask than the login user
        os.chmod(path, 0o755)  # noqa: S103 - nothing in it is secret
    os.mkfifo(folder + _ALIVE, 0o600)
    descriptor = os.open(folder + _ALIVE, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.rename(folder, control + "/start")
    except OSError:
        os.close(descriptor)
        shutil.rmtree(folder)
        if not os.path.isdir(control + "/start"):
            raise
        return None
    return descriptor


def _start_supervisor(order: "dict[str, object]") -> int:
    """Start the supervisor, and return the pid of the program once that is recorded."""
    with KEEPING:
        process = subprocess.Popen(
            command("supervisor", str(order["stderr"])),  # for ps: what it supervises
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=dict(os.environ, LC_ALL="C", PATH=search_path()),
            start_new_session=True,
            pass_fds=[int(str(order["alive"])), *KEPT_OPEN.values()],
        )
    try:
        output, errors = process.communicate(json.dumps(order).encode(), timeout=_LAUNCH_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AgentError("failed", "it did not start in {:.0f} s".format(_LAUNCH_S)) from None
    text = output.decode("utf-8", "replace").strip()
    if text.isdigit():
        return int(text)
    reason = text or errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise AgentError("failed", reason or "its supervisor ended")


def was_launched(control: str) -> bool:
    """Return whether a program was started, or is being started."""
    has_ended = os.path.exists(control + "/end")
    return bool(pid_of(control)) or has_ended or is_supervised(control)


def is_supervised(control: str) -> bool:
    """Return whether a program is being started, or its supervisor is alive."""
    try:
        os.close(os.open(control + "/start" + _ALIVE, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:  # nobody has it open
        return False
    return True


def pid_of(control: str) -> int:
    """Return the pid of a program; 0 if it is unknown."""
    return number_in(read_json(control + "/state"), "pid")


def read_json(path: str) -> "dict[str, object]":
    """Return the content of a file of the control folder; empty if it does not exist."""
    try:
        content = json.loads(read_text(path) or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def number_in(content: "dict[str, object]", name: str) -> int:
    """Return a number of the content of a file; 0 if it is missing."""
    value = content.get(name)
    return value if isinstance(value, int) else 0


def ticks_of(pid: int) -> int:
    """Return the start time of a live process in clock ticks since boot; 0 if it has ended."""
    fields = (read_text("/proc/{}/stat".format(pid)) or "").rpartition(")")[2].split()
    return 0 if len(fields) < 20 or fields[0] in "ZX" else int(fields[19])


def is_running(control: str, process: str = "") -> bool:
    """Return whether a program still runs; with "supervisor_", whether its supervisor does."""
    state = read_json(control + "/state")
    pid, ticks = number_in(state, process + "pid"), number_in(state, process + "ticks")
    return state.get("boot") == boot_id() and bool(ticks) and ticks_of(pid) == ticks


def boot_id() -> str:
    """Return the id of this boot of the machine; empty if it is unknown."""
    return first_line("/proc/sys/kernel/random/boot_id")


def send_signal(control: str, number: int) -> None:
    """Send a signal to the process group of a program; SIGKILL also to all its descendants."""
    if is_running(control):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid_of(control), number)
    if number == signal.SIGKILL:
        _kill_descendants(control)


def _kill_descendants(control: str) -> None:
    """Kill all processes of a program, whatever group they are in."""
    entry = "{}={}".format(CONTROL, control).encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        if entry in (read_bytes("/proc/{}/environ".format(name)) or b"").split(b"\0"):
            with contextlib.suppress(OSError):  # it ended, or is of another user
                os.kill(int(name), signal.SIGKILL)


def stop_sampling(control: str) -> None:
    """End the sampler of a program that has ended, after one last sample."""
    if is_running(control, "supervisor_"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number_in(read_json(control + "/state"), "supervisor_pid"), signal.SIGTERM)


def main(_arguments: "list[str]") -> None:
    """Supervise the program of an order, which is read from standard input."""
    order = json.loads(sys.stdin.buffer.read().decode())
    os.set_inheritable(order["alive"], False)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.umask(0o22)  # files written by root must be readable by the login user, who fetches them
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])
    supervisor = _Supervisor(order)
    try:
        supervisor.run()
    except AgentError as error:
        _reply(error.message)
    except OSError as error:
        _reply(error.strerror or str(error))
    else:
        os._exit(0)
    if supervisor.is_alone:  # nobody else removes it
        shutil.rmtree(str(order["control"]), ignore_errors=True)
    os._exit(1)


def _reply(text: str) -> None:
    """Answer the launch, and detach from it."""
    null = os.open(os.devnull, os.O_RDWR)
    with contextlib.suppress(OSError):  # the launch has ended
        os.write(1, text.encode("utf-8", "replace"))
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.close(null)


class _Supervisor:
    """Supervision of one program."""

    def __init__(self, order: "dict[str, object]") -> None:
        self._order = order
        self._control = str(order["control"])
        self._longest_s = float(str(order["longest_s"]))
        attached = order["attached"]
        self._controller = attached if isinstance(attached, list) else []
        self._sampler = None  # type: Sampler | None
        self._pid = 0
        self._has_ended = False
        self._cwd = str(order["cwd"])
        self._reserve_bytes, self._sized_s = _RESERVE_BYTES, 0.0
        self._started_s = 0.0
        self._is_killing = False

    def run(self) -> None:
        """Start the program, and go on until it and its sampler have ended."""
        pipes = [self._open_pipe("news")]
        if self._order["gate_s"] is not None:
            pipes.append(self._open_pipe("door"))
        pid = os.getpid()
        state = {"boot": boot_id(), "supervisor_pid": pid, "supervisor_ticks": ticks_of(pid)}
        self._write_state("state", state)
        with open(self._path("reserve"), "wb") as file:
            file.write(b" " * 4096)  # removed for its end, where the disk is full
        errors = self._open(str(self._order["stderr"]))
        devices = []  # type: list[int]
        orders = self._order["hold"]
        for each in orders if isinstance(orders, list) else ():
            device, refusal = _hold(each)
            if refusal:
                os.write(errors, "volbench-hold: {}\n".format(refusal).encode())
                self._end(NOT_STARTED)
                _reply("0")
                return
            devices.append(device)
        with contextlib.suppress(AgentError):
            self._reserve_bytes *= free_space(self._cwd)[0] >= 2 * _RESERVE_BYTES
        self._start_sampler()
        self._start(state, errors, devices)
        for descriptor in devices:
            os.close(descriptor)
        _reply(str(self._pid))
        self._supervise(errors)
        for pipe in pipes:
            os.close(pipe)
        if self._order["temporary"] and not os.fork():  # the supervisor's own end ends the watch
            self._remove_when_left()

    def _remove_when_left(self) -> None:
        """Remove the work folder, which the controller has had the time to fetch and remove."""
        until_s = time.monotonic() + _FETCHED_S
        while os.path.isdir(self._control) and time.monotonic() < until_s:
            time.sleep(_TICK_S)
        remove_work_folder(os.path.dirname(self._cwd), self._cwd)

    def _path(self, name: str) -> str:
        return "{}/{}".format(self._control, name)

    def _open_pipe(self, name: str) -> int:
        """Make a named pipe; open for reading too, it never blocks, and its end wakes readers."""
        os.mkfifo(self._path(name), 0o600)
        return os.open(self._path(name), os.O_RDWR | os.O_CLOEXEC)

    def _open(self, path: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(path, flags, 0o644)
        except OSError as error:
            reason = "{} cannot be written: {}".format(path, error.strerror)
            raise AgentError("failed", reason) from error

    def _write_state(self, name: str, content: "dict[str, object]") -> None:
        with open(self._path(name + ".new"), "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self._path(name + ".new"), self._path(name))

    def _start_sampler(self) -> None:
        sampling = self._order["sampling"]
        if not isinstance(sampling, dict):
            return
        self._sampler = Sampler(
            self._open(self._path("samples")),
            sampling["devices"],
            sampling["interval_s"],
            is_tail_followed=sampling["is_tail_followed"],
        )

    def _start(self, state: "dict[str, object]", errors: int, devices: "list[int]") -> None:
        """Start the program, which waits until its state is recorded."""
        output = self._open(self._path("out"))
        hold_read, hold_write = os.pipe()
        error_read, error_write = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(hold_write)
            self._become_program(hold_read, error_write, output, errors, devices)
        for descriptor in (hold_read, error_write, output):
            os.close(descriptor)
        self._pid, self._started_s = pid, time.monotonic()
        state.update({"pid": pid, "ticks": ticks_of(pid)})
        try:
            self._write_state("state", state)
        except OSError:
            os.close(hold_write)  # it ends without starting
            raise
        if self._sampler is not None:
            self._sampler.started(pid)
        os.write(hold_write, b"1")
        os.close(hold_write)
        problem = os.read(error_read, 4096)
        os.close(error_read)
        if problem:
            self._end(_status(os.waitpid(pid, 0)[1]))
            raise AgentError("failed", problem.decode("utf-8", "replace"))

    def _become_program(
        self, hold: int, errors_to: int, output: int, errors: int, devices: "list[int]"
    ) -> None:
        """Turn this child process into the program, once it may start."""
        try:
            os.setsid()
            if os.read(hold, 1) != b"1":
                os._exit(NOT_STARTED)
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            for number, descriptor in enumerate((null, output, errors)):
                os.dup2(descriptor, number)
            for device in devices:
                os.set_inheritable(device, True)
            os.chdir(self._cwd)
            argv = self._argv()
            os.execve(argv[0], argv, self._environment())  # noqa: S606 - never through a shell
        except OSError as error:
            os.write(errors_to, (error.strerror or str(error)).encode())
        finally:
            os._exit(126)

    def _argv(self) -> "list[str]":
        argv, gate_s = self._order["argv"], self._order["gate_s"]
        assert isinstance(argv, list)  # noqa: S101 - for the type checker
        if gate_s is None or os.path.basename(argv[0]) == "fio":
            return argv
        return _gate_command(float(str(gate_s)), self._path("door")) + argv

    def _environment(self) -> "dict[str, str]":
        secrets, gate_s = self._order["environment"], self._order["gate_s"]
        assert isinstance(secrets, dict)  # noqa: S101 - for the type checker
        environment = dict(os.environ, TMPDIR=OWN_FOLDER, **secrets)
        environment[CONTROL] = self._control
        if gate_s is not None:
            environment[gate.VARIABLE] = _gate_script(float(str(gate_s)), self._path("door"))
        return environment

    def _check_results(self, errors: int) -> None:
        """End a program whose results fill their disk, or never end."""
        now_s, problem = time.monotonic(), b""
        with contextlib.suppress(AgentError, OSError):  # a file or all of them are gone
            problem = _FILLING if free_space(self._cwd)[0] < self._reserve_bytes else b""
            if now_s >= self._sized_s and not problem:
                self._sized_s = now_s + _SIZED_S
                files = [*os.scandir(self._cwd), *os.scandir(self._control)]  # which closes both
                size_bytes = sum(file.stat(follow_symlinks=False).st_size for file in files)
                problem = _LARGE if size_bytes > _MAX_BYTES else b""
        if problem:
            self._longest_s = now_s - self._started_s
            with contextlib.suppress(OSError):  # it is full already
                os.write(errors, problem)

    def _supervise(self, errors: int) -> None:
        """Wait for the end of the program, which may not fill the disk, and of its sampler."""
        while not self._has_ended or (self._sampler is not None and not self._sampler.is_over):
            due_s = time.monotonic() + _TICK_S
            if self._sampler is not None and not self._sampler.is_over:
                due_s = min(due_s, self._sampler.due_s)
            left_s = max(0.0, due_s - time.monotonic())
            received = signal.sigtimedwait([signal.SIGTERM, signal.SIGCHLD], left_s)
            self._reap()
            if self.is_alone:  # no resume can take the program over
                self._controller, self._sampler = [], None
                self._longest_s = min(self._longest_s, time.monotonic() - self._started_s)
            elif not (self._has_ended or self._is_killing):
                self._check_results(errors)
            self._check_deadline()
            if self._sampler is None:
                continue
            if received is not None and received.si_signo == signal.SIGTERM and self._has_ended:
                self._sampler.stop("cut off: stopped by the user")
            self._sampler.take_due()

    @property
    def is_alone(self) -> bool:
        """Whether the controller of an attached program is gone."""
        return bool(self._controller) and ticks_of(self._controller[0]) != self._controller[1]

    def _reap(self) -> None:
        """Record the end of the program, if it has ended."""
        if self._has_ended:
            return
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            if self._sampler is not None:
                self._sampler.ended()
            self._end(_status(status))

    def _end(self, status: int) -> None:
        """Record the exit status, even where the disk stays full for a while."""
        self._has_ended = True
        while True:
            try:
                self._write_state("end", {"status": status})
                break
            except OSError:
                if not os.path.isdir(self._control):
                    break  # the run was removed
                with contextlib.suppress(OSError):
                    os.unlink(self._path("reserve"))
                time.sleep(_TICK_S)
        gate.wake(self._path("news"))

    def _check_deadline(self) -> None:
        """End the program at its deadline, and its sampler some time later."""
        over_s = time.monotonic() - self._started_s - self._longest_s
        if over_s < 0:
            return
        if self._has_ended:
            if self._sampler is not None and over_s > _MAX_SAMPLING_S:
                self._sampler.is_over = True
        elif not self._is_killing:
            self._is_killing = True
            os.killpg(self._pid, signal.SIGINT)
        elif over_s > KILL_AFTER_S:
            os.killpg(self._pid, signal.SIGKILL)
            _kill_descendants(self._control)


def _status(status: int) -> int:
    """Return the exit status of a process, negative after a signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _gate_script(patience_s: float, door: str) -> str:
    """Return the value of `gate.VARIABLE`.

    The first job waits in Python, since each further process costs tens of milliseconds where cores
    are busy. The others wait for it at a named pipe in their shell, with a tenth of the memory.
    """
    argv = " ".join(shlex.quote(word) for word in _gate_command(patience_s, door))
    return (
        "mkdir -p {folder} && if mkdir {folder}/waiting 2>/dev/null; then exec {argv}; "
        "else read -r word <{door} && [ -d {open} ]; fi"
    ).format(folder=gate.FOLDER, argv=argv, door=shlex.quote(door), open=gate.OPEN)


def _gate_command(patience_s: float, door: str) -> "list[str]":
    """Return the command that waits at the gate; a program to start then may follow it."""
    return command("gate", str(round(patience_s)), door)


def _hold(order: "dict[str, typing.Any]") -> "tuple[int, str]":  # noqa: PLR0911 - one for each check
    """Open the block device that a program works on, and check that it is the planned one.

    fio opens devices without O_EXCL, so that it can work while this process holds it. The program
    inherits the descriptor, so that nothing else gets the device's number before it ends.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_EXCL if order["exclusive"] else 0)
    try:
        if not stat.S_ISBLK(os.stat(order["node"]).st_mode):
            return -1, "node "
        descriptor = os.open(order["node"], flags)
    except OSError:
        return -1, "node "
    mode = os.fstat(descriptor)
    if not stat.S_ISBLK(mode.st_mode):
        return -1, "node "
    number = "{}:{}".format(os.major(mode.st_rdev), os.minor(mode.st_rdev))
    if number != order["number"]:
        return -1, "number " + number
    facts = "/sys/dev/block/" + number
    sectors = first_line(facts + "/size")
    if sectors != str(order["size_bytes"] // _SECTOR_BYTES):
        return -1, "size " + sectors
    if boot_id() != order["boot_id"]:
        return -1, "boot "
    disk = facts + "/.." if os.path.exists(facts + "/partition") else facts
    diskseq = first_line(disk + "/diskseq")
    if diskseq != order["diskseq"]:
        return -1, "diskseq " + diskseq
    return descriptor, ""
