"""Service of the agent: requests in, replies out, one JSON line each, many at a time.

    {"id": 7, "op": "stat", "args": {"path": "/"}}       request
    {"id": 7, "at": 2.5, "within": 60.0, ...}            ... sent at a time, given up after seconds
    {"id": 7, "root": true, ...}                         ... for the agent that runs as root
    {"id": 7, "cancel": true}                            ends an operation that yields parts
    {"id": 7, "part": ...}                               part of a result
    {"id": 7, "result": ...}                             its end
    {"id": 7, "error": ["missing", "No such file"]}      its end: kind and reason
    {"id": 7, "z": "..."}                                a longer message, compressed
    {"id": 0, "part": null}                              nothing, to try the link

An operation that is a generator yields parts until its end; None only asks whether it is cancelled.
"""

import base64
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
import typing
import zlib
from collections import deque

from volbench.execute.agent import files, locks, run_command
from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.facts import clock
from volbench.execute.agent.installed_program import Program
from volbench.execute.agent.operations import OPERATIONS

_MAX_THREADS = 64  # A hung volume holds a thread for each request about it; idle ones cost nothing.
_STACK_BYTES = 512 * 1024  # 64 threads of 8 MiB each would count against limits of memory.
_PLAIN_BYTES = 1024  # Below, compression gains less than base64 loses.
_END_S = 2.0  # Killed programs end at once; their temporary files are removed meanwhile.
# Interval of keepalive messages: without them the kernel notices a lost link only after hours.
# Noticed by: test_given_up.py::test_a_host_notices_that_its_controller_is_gone
_BEAT_S = 15.0
_GONE_S = 5.0  # Longer than the end of this process takes.
_EXPIRING = ("launch", "write_files")  # What removes or releases something is never too late.
BEAT = b'{"id":0,"part":null}\n'
_FINAL = re.compile(rb'\{"id":(\d+),"(?!part)')
_SUDO = re.compile(r"^sudo: (.*)$", re.MULTILINE)
_ROOT_LOADER = "import sys,zlib;p=sys.stdin.buffer.read({});early=[];exec(zlib.decompress(p))"


class Output:
    """Lines to the controller, each written whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, number: int, key: str, value: object) -> None:
        """Send a message about a request; `value` is what JSON can carry."""
        line = json.dumps({"id": number, key: value}, separators=(",", ":")).encode()
        if len(line) > _PLAIN_BYTES and key != "part":
            packed = base64.b64encode(zlib.compress(line, 6)).decode()
            line = json.dumps({"id": number, "z": packed}, separators=(",", ":")).encode()
        self.write(line + b"\n")

    def write(self, line: bytes) -> None:
        """Write a line; a controller that is gone ends this process."""
        with self._lock:
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:
                run_command.kill_all()
                _leave(1)


class Threads:
    """Threads that are started when all others are busy."""

    def __init__(self) -> None:
        self._work = deque()  # type: deque[tuple[int, str, dict[str, object]]]
        self._changed = threading.Condition()
        self._idle = 0
        self._count = 0
        self.cancelled = set()  # type: set[int]
        self._least_s = math.inf

    def delay_s(self, sent_s: float) -> float:
        """Return how much longer a request took to arrive than the fastest one."""
        lag_s = time.monotonic() - sent_s
        self._least_s = min(self._least_s, lag_s)
        return lag_s - self._least_s

    def submit(self, output: Output, number: int, name: str, given: "dict[str, object]") -> None:
        """Carry out an operation in a thread of its own."""
        with self._changed:
            self._work.append((number, name, given))
            if self._idle < len(self._work) and self._count < _MAX_THREADS:
                self._count += 1
                threading.Thread(target=self._run, args=(output,), daemon=True).start()
            self._changed.notify()

    def _run(self, output: Output) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._work:
                    self._changed.wait()
                self._idle -= 1
                number, name, given = self._work.popleft()
            self._carry_out(output, number, name, given)

    def _carry_out(
        self, output: Output, number: int, name: str, given: "dict[str, object]"
    ) -> None:
        try:
            result = OPERATIONS[name](**given)
            if hasattr(result, "send"):
                for part in result:  # type: ignore[attr-defined]  # a generator
                    if number in self.cancelled:
                        break
                    if part is not None:
                        output.send(number, "part", part)
                self.cancelled.discard(number)
                result = None
        except (AgentError, OSError) as error:
            failure = of_os_error(error)
            output.send(number, "error", [failure.kind, failure.message])
        except MemoryError:
            reason = "its agent has not enough memory for {}: see ulimit -v there".format(name)
            output.send(number, "error", ["failed", reason])
        except Exception as error:  # noqa: BLE001 - the controller reports it with the host's name
            text = "{} in {}: {}".format(type(error).__name__, name, error)
            output.send(number, "error", ["failed", text])
        else:
            output.send(number, "result", result)

    def end(self, seconds: float) -> None:
        """Kill running programs until all threads are idle, at most for some seconds."""
        end = time.monotonic() + seconds
        while self._idle < self._count and time.monotonic() < end:
            run_command.kill_all()  # again: a thread may be starting one
            time.sleep(0.01)


class RootAgent:
    """A second agent, which sudo starts when it is first needed; it answers for itself."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._process = None  # type: subprocess.Popen[bytes] | None
        self._pending = set()  # type: set[int]
        self._lock = threading.Lock()

    def forward(self, number: int, line: bytes) -> None:
        """Let it carry out a request."""
        with self._lock:
            try:
                if self._process is None or self._process.poll() is not None:
                    self._start()
                self._pending.add(number)
                self._write(line)
            except FileNotFoundError:
                self._output.send(number, "error", ["sudo", "it is not installed"])
            except OSError as error:  # it has ended; `_read` says why
                if number not in self._pending:
                    self._output.send(number, "error", ["sudo", error.strerror])

    def cancel(self, number: int, line: bytes) -> None:
        """Pass on that an operation is to end, if it is one of this agent."""
        with self._lock:
            if number in self._pending:
                with contextlib.suppress(OSError):  # it has ended
                    self._write(line)

    def _write(self, line: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None  # noqa: S101, PT018 - for the type checker
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def _start(self) -> None:
        loader = _ROOT_LOADER.format(len(Program.data))
        self._process = subprocess.Popen(
            ["sudo", "-n", "--", sys.executable, "-IS", "-c", loader],  # noqa: S607 - in PATH
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self._write(Program.data)

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - for the type checker
        for line in process.stdout:
            if not line.startswith(b"{"):
                continue  # a banner of sudo or PAM
            final = _FINAL.match(line)
            if final:
                with self._lock:
                    self._pending.discard(int(final.group(1)))
            self._output.write(line)
        text = process.stderr.read(65536).decode("utf-8", "replace")
        process.wait()
        refusal = _SUDO.search(text)
        reason = refusal.group(1) if refusal else text.strip() or "its agent ended"
        with self._lock:
            pending, self._pending = self._pending, set()
        for number in pending:
            self._output.send(number, "error", ["sudo", reason])


def serve(early: "list[bytes]") -> None:
    """Answer requests until standard input ends."""
    threading.stack_size(_STACK_BYTES)
    output = Output(os.dup(1))
    os.dup2(2, 1)  # nothing that a library prints may reach the controller as a reply
    threading.Thread(target=_beat, args=(output,), daemon=True).start()
    threads, root = Threads(), RootAgent(output)
    for line in early:
        _take_request(line, output, threads, root)
    for line in sys.stdin.buffer:
        _take_request(line, output, threads, root)
    threads.end(_END_S)
    _leave(0)


def _beat(output: Output) -> None:
    """Send keepalives: without them the kernel notices the loss of a link after hours."""
    while True:
        time.sleep(_BEAT_S)
        output.write(BEAT)


_leaving = threading.Lock()


def _leave(status: int) -> None:
    """Shut down and remove unused locks and folders of a lost controller."""
    _leaving.acquire()  # for good: another thread may find the controller gone, too
    if locks.release_unused():  # else a run needs them, or the controller is back
        files.remove_unused()
    os._exit(status)


def _take_request(line: bytes, output: Output, threads: Threads, root: RootAgent) -> None:
    request = json.loads(line.decode())
    number = request["id"]
    if "z" in request:
        request = json.loads(zlib.decompress(base64.b64decode(request["z"])).decode())
    arguments = (request, number, line, output, threads, root)
    is_late = "at" in request and threads.delay_s(request["at"]) > request["within"]
    if is_late and request["op"] in _EXPIRING:
        # The controller has given it up: the end of its stream follows, and of this process. A
        # controller whose clock stood still waits for it a little longer.
        timer = threading.Timer(_GONE_S, _carry_out, arguments)
        timer.daemon = True
        timer.start()
    else:
        _carry_out(*arguments)


def _carry_out(
    request: "dict[str, typing.Any]",
    number: int,
    line: bytes,
    output: Output,
    threads: Threads,
    root: RootAgent,
) -> None:
    if request.get("cancel"):
        threads.cancelled.add(number)
        root.cancel(number, line)
    elif request["op"] == clock.__name__:
        output.send(number, "result", clock())
    elif request["op"] not in OPERATIONS:
        output.send(number, "error", ["failed", "unknown operation {}".format(request["op"])])
    elif request.get("root") and os.geteuid():
        root.forward(number, line)
    else:
        threads.submit(output, number, request["op"], request["args"])
