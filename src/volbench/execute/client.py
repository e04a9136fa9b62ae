"""Client of the agent on a host: many requests at a time over one stream that is reopened.

A broken stream fails its pending requests and ends its subscriptions; the next request opens a new
one. No program that was started detached depends on it.
"""

from __future__ import annotations

import base64
import itertools
import json
import queue
import re
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from volbench.errors import (
    AuthError,
    ConnectError,
    DeadlineError,
    HostKeyError,
    TransportError,
    VolbenchError,
)
from volbench.execute.agent.facts import clock
from volbench.execute.agent.operations import USUAL_LIMIT_S
from volbench.execute.agent.service import BEAT
from volbench.execute.channels import Channel, Patience, ProgramEnd, Stream, connection_lost, retry
from volbench.execute.presence import PRESENCE, own_time
from volbench.execute.program_bundle import FLAGS, START, agent_program
from volbench.execute.protocol import ClockReading, OperationError
from volbench.execute.typed_operations import checked_answer, checked_part

INTERPRETERS = ("python3", "/usr/libexec/platform-python")
"""What is tried unless the inventory names one; the second is the system's own of RHEL 8 and 9."""

OPEN_S = 45.0  # Over 64 kbit/s, connection and program take 6 s; MaxStartups may delay the login.
# Python starts in 0.1 s, on a busy machine in seconds; a shell that the user's start-up files begin
# instead reads the requests as commands, and never greets.
# Noticed by: test_login_shells.py::test_a_profile_that_starts_another_shell_is_reported_quickly
GREETING_S = 20.0
_REASON_S = 1.0  # A login shell that ends says why at once. Noticed by: tests/execute/test_agent.py
# Between two questions whether a host works that owes a reply; a silent client counts from 4 s on.
# Noticed by: test_given_up.py::test_a_campaign_leaves_nothing_on_a_host_that_froze
_PING_S = 2.0
_CLOCK_S = 20.0  # As the silence of a watched program. Noticed by: tests/fleet/test_clock.py
# Of the best of 5 to 10 exchanges the true error stayed within its bound (measured).
# Noticed by: test_start.py::test_the_true_skew_is_within_the_reported_bound
_CLOCK_READINGS = 8
_CLOCK_SPACING_S = 0.01  # So that readings do not wait for one another on the way.
_MAX_LINE_BYTES = 128 * 1024**2  # Twice what the agent reads of a program or a file.
_MAX_PREAMBLE_BYTES = 65_536  # A greeting has a few kB. Noticed by: tests/execute/test_agent.py
# What a login shell may print in all: a hundred times the longest greeting.
# Noticed by: test_one_bad_host.py::test_bad_hosts_harm_no_other
_MAX_PRINTED_BYTES = 1024**2
_PLAIN_BYTES = 1024  # As in `agent.service`.
_MAX_SHOWN = 200  # characters of a login shell's output, in a cell of a table
_KILLED = 128 + 9  # exit status of what SIGKILL ended
_UNUSABLE = re.compile(  # Python 2 knows no -I.
    r"not found|no such file|cannot execute|permission denied|unknown option", re.IGNORECASE
)
# What logins and agents print of limits, and what it means.
# Noticed by: test_host_faults.py::test_what_is_wrong_with_hosts_is_said
_TROUBLES = {
    r"(password|account)\b.{0,40}\bexpired|password change required": "the password or the account"
    " of the user has expired there: renew it (passwd, chage)",
    r"can't start new thread|cannot fork|fork: retry|resource temporarily": "the user may start no"
    " more processes there: raise ulimit -u (nproc)",
    r"too many open files": "the user may open no more files there: raise ulimit -n (nofile)",
}
_PYTHON_HINT = (
    "install Python 3.6 or newer there (apt-get install python3, dnf install python3, "
    "apk add python3), or set `python` of the host in the inventory to its path"
)

_SHELL_HINT = (
    "try: ssh HOST python3 --version; the login shell must allow that, and its start-up files must "
    "start no other shell (exec zsh) for commands"
)

T = TypeVar("T")


class PythonError(TransportError):
    """A host has no Python that can run the agent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint=_PYTHON_HINT)


Arguments = Mapping[str, object]
Part = TypeVar("Part")


@dataclass(frozen=True)
class Request(Generic[T]):
    """A request to the agent, answered in the type that its operation returns."""

    operation: Callable[..., T]
    arguments: Arguments = field(default_factory=dict)
    timeout_s: float = USUAL_LIMIT_S  # limit of the reply, or of the silence between parts
    as_root: bool = False  # whether sudo's agent carries it out, unless the login user is root
    repeatable: bool = True  # whether it may be resent after a broken connection
    name: str = ""  # for messages; empty for the operation

    def exceeded(self, host: str) -> DeadlineError:
        """Return the error of a request without a reply."""
        return DeadlineError(
            f"{self.name or self.operation.__name__} did not end in {self.timeout_s:g} s on {host} "
            "and was abandoned",
            hint="the host may be hung, or a volume there does not respond",
        )


@dataclass(frozen=True)
class Standing:
    """Request that each new stream begins with, as its effect may end with the stream before."""

    request: Request[Any]
    check: Callable[[Any], None]  # raises if its result forbids to go on


class Receiver:
    """Receiver of the messages about one request; called by the channel's reader."""

    def part(self, value: object) -> None:
        """Take a part of the result."""

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Take the end."""


class Reply(Receiver):
    """Reply that another thread waits for."""

    def __init__(self) -> None:
        self._parts: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()

    def part(self, value: object) -> None:
        """Take a part of the result."""
        self._parts.put(("part", value))

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Take the end."""
        self._parts.put(("end", result) if error is None else ("error", error))

    def next(self, timeout_s: float) -> tuple[str, object]:
        """Return the next message: ``part`` or ``end`` and its value; raise an error."""
        kind, value = self._parts.get(timeout=max(0.0, timeout_s))
        if isinstance(value, VolbenchError):
            raise value
        return kind, value


class ClockReply(Receiver):
    """Reply to a request for the time, which notes when it arrived."""

    def __init__(self, arrived: threading.Semaphore) -> None:
        self.sent_s = 0.0
        self.reading: ClockReading | None = None
        self.error: VolbenchError | None = None
        self._arrived = arrived

    def end(self, result: object, error: VolbenchError | None) -> None:
        """Take the end."""
        received_s = own_time()
        self.error = error
        if isinstance(result, list) and [type(each) for each in result] == [float, float]:
            self.reading = ClockReading(self.sent_s, result[0], received_s, result[1])
        self._arrived.release()


class Session:
    """One open stream to an agent."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.heard_s = time.monotonic()  # of the last output
        self.error: VolbenchError | None = None  # reason of its end; None while it is open
        self.is_ready = False  # whether the agent answers
        self._is_greeted = False  # whether Python has begun
        self._mark = f"volbench-{secrets.token_hex(8)}"
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._stream: Stream | None = None
        self._line = bytearray()
        self._preamble = b""
        self._printed_bytes = 0  # before the agent greeted
        self._receivers: dict[int, Receiver] = {}
        self._numbers = itertools.count(1)
        self._since_s = time.monotonic()

    def open(self, channel: Channel, python: str) -> None:
        """Start the agent; requests may be sent before it is ready."""
        bootstrap = agent_program().bootstrap(self._mark)
        argv = [python, *FLAGS, START.format(len(bootstrap))]
        with self._sending:
            self._stream = channel.open(argv, self._receive, self._end, within_s=OPEN_S)
        self._write_line(bootstrap)

    def wait_for_greeting(self) -> None:
        """Wait until Python has begun."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_greeted or bool(self.error), GREETING_S)
        if not self._is_greeted and self.error is None:
            text = self._preamble.decode("utf-8", "replace").strip()
            self.close(
                DeadlineError(
                    f"the login shell on {self.host} did not start Python in {GREETING_S:g} s"
                    + (f": {_ending(text)}" if text else ""),
                    hint=_SHELL_HINT,
                )
            )
        if self.error is not None:
            raise self.error

    def wait_until_ready(self) -> None:
        """Wait until the agent answers."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_ready or self.error is not None, OPEN_S)
            if self.error is not None:
                raise self.error
        if not self.is_ready:
            error = Request(clock, timeout_s=OPEN_S, name="starting the agent").exceeded(self.host)
            self.close(error, in_doubt=True)
            raise error

    def send(self, request: Request[Any], receiver: Receiver) -> int:
        """Send a request and return its number."""
        with self._changed:
            if self.error is not None:
                raise self.error
            number = next(self._numbers)
            self._receivers[number] = receiver
        message: dict[str, object] = {"op": request.operation.__name__, "args": request.arguments}
        # One that the agent of a frozen host finds later is given up.
        message["at"] = round(time.monotonic() - self._since_s, 3)
        message["within"] = request.timeout_s
        if request.as_root:
            message["root"] = True
        line = _json_line({"id": number, **message})
        if len(line) > _PLAIN_BYTES:
            packed = base64.b64encode(zlib.compress(line)).decode("ascii")
            line = _json_line({"id": number, "z": packed})
        self._write_line(line)
        return number

    def forget(self, number: int, *, cancel: bool = False) -> None:
        """Drop further messages about a request, and end it on the host if it yields parts."""
        with self._changed:
            is_pending = self._receivers.pop(number, None) is not None
        if cancel and is_pending and self.error is None:
            self._write_line(_json_line({"id": number, "cancel": True}))

    def _write_line(self, data: bytes) -> None:
        if self._stream is None:
            raise connection_lost(self.host, "", sent=False)
        try:
            with self._sending:
                self._stream.send(data)
        except ConnectError as error:
            if not self.is_ready:  # why there is no agent is reported on another way
                with self._changed:
                    self._changed.wait_for(lambda: self.error is not None, _REASON_S)
            self.close(self.error or error)
            raise (self.error or error) from error
        if self.error is not None:
            self._stream.close()
            raise self.error

    def close(self, error: VolbenchError, *, in_doubt: bool = False) -> None:
        """Close the stream and end all that waits for it."""
        if self._stream is not None:
            self._stream.close(in_doubt=in_doubt)
        self._fail(error)

    def _receive(self, data: bytes) -> None:
        """Process output; called by the channel's reader."""
        if data != BEAT:  # a host whose volumes are hung is silent all the same
            self.heard_s = time.monotonic()
        try:
            *complete, rest = data.split(b"\n")
            for part in complete:
                self._line += part
                line, self._line = bytes(self._line), bytearray()
                self._take(line)
            self._line += rest
            if len(self._line) > (_MAX_LINE_BYTES if self.is_ready else _MAX_PREAMBLE_BYTES):
                raise self._malformed(bytes(self._line[:80]))
        except VolbenchError as error:
            self.close(error)

    def _take(self, line: bytes) -> None:
        if not self.is_ready:
            self._take_greeting(line)
            return
        number, key, value = self._parse(line)
        with self._changed:
            receiver = self._receivers.get(number)
            if receiver is not None and key != "part":
                del self._receivers[number]
        if receiver is None:
            return
        if key == "part":
            receiver.part(value)
        elif key == "result":
            receiver.end(value, None)
        else:
            receiver.end(None, self._operation_error(line, value))

    def _parse(self, line: bytes) -> tuple[int, str, object]:
        """Return number, key and value of a message."""
        try:
            message = json.loads(line)
            if "z" in message:
                inflate = zlib.decompressobj()
                message = json.loads(
                    inflate.decompress(base64.b64decode(message["z"]), _MAX_LINE_BYTES)
                )
            number = message.pop("id")
            ((key, value),) = message.items()
        except (
            *(ValueError, TypeError, AttributeError, KeyError, RecursionError, zlib.error),
        ) as error:
            raise self._malformed(line[:80]) from error
        if type(number) is not int or key not in {"part", "result", "error"}:
            raise self._malformed(line[:80])
        return number, key, value

    def _operation_error(self, line: bytes, value: object) -> VolbenchError:
        match value:
            case ["sudo", str(reason)]:
                return AuthError(
                    f"sudo does not start a program on {self.host}: {reason[:500]}",
                    hint="allow your user to run programs without a password (NOPASSWD in "
                    "sudoers), log in as root, or remove `sudo` from the inventory",
                )
            case [str(kind), str(reason)]:
                return OperationError(kind, reason[:4000], host=self.host)
            case _:
                return self._malformed(line[:80])

    def _take_greeting(self, line: bytes) -> None:
        """Process a line before the agent is ready; a login shell may print text before it."""
        fields = line.decode("utf-8", "replace").split()
        if len(fields) != 3 or fields[0] != self._mark:
            self._preamble = (self._preamble + line + b"\n")[-_MAX_PREAMBLE_BYTES:]
            self._printed_bytes += len(line) + 1
            if self._printed_bytes > _MAX_PRINTED_BYTES:
                message = f"the login shell on {self.host} prints without end: "
                message += _ending(line.decode("utf-8", "replace"))
                raise TransportError(message, hint=_SHELL_HINT)
            return
        with self._changed:
            self._is_greeted = True
            self._changed.notify_all()
        if fields[1] == "need":  # the reader must not wait for a slow link
            threading.Thread(target=self._send_program, name="program", daemon=True).start()
        elif fields[1] == "ready":
            with self._changed:
                self.is_ready = True
                self._changed.notify_all()
        else:
            reason = f"it is {fields[2]}" if fields[1] == "old" else "it arrived damaged"
            raise PythonError(f"Python on {self.host} cannot run the agent: {reason[:40]}")

    def _send_program(self) -> None:
        try:
            self._write_line(b"#\n" + agent_program().data)
        except VolbenchError as error:
            self._fail(error)

    def _end(self, end: ProgramEnd | VolbenchError) -> None:
        if isinstance(end, VolbenchError):
            self._fail(end)
        elif self.is_ready:
            how = "was killed, as when memory runs out" if end.status == _KILLED else "ended"
            last = end.stderr.strip().rpartition("\n")[2]
            reason = f"its agent {how}: {_in_words(last)}".removesuffix(": ")
            self._fail(connection_lost(self.host, reason, sent=True))
        else:
            self._fail(self._not_started(end))

    def _not_started(self, end: ProgramEnd) -> TransportError:
        text = f"{self._preamble.decode('utf-8', 'replace')} {end.stderr}".strip()
        if end.status in {126, 127} or _UNUSABLE.search(text):
            return PythonError(
                f"{self.host} has no usable Python: {text[-300:] or f'status {end.status}'}"
            )
        return TransportError(
            f"the login shell on {self.host} did not start Python: "
            f"{_in_words(text) or f'it ended with status {end.status}'}",
            hint=_SHELL_HINT,
        )

    def _fail(self, error: VolbenchError) -> None:
        with self._changed:
            if self.error is not None:
                return
            self.error = error
            receivers = list(self._receivers.values())
            self._receivers.clear()
            self._changed.notify_all()
        for receiver in receivers:
            receiver.end(None, error)

    def _malformed(self, line: bytes) -> TransportError:
        return TransportError(
            f"the agent on {self.host} sent an invalid line: {line!r}",
            hint="do not trust this host",
        )


class AgentClient:
    """Requests to the agent of a host, under a Python there; by default under `INTERPRETERS`."""

    def __init__(
        self, channel: Channel, *, python: str = "", patience: Patience | None = None
    ) -> None:
        self.host = channel.host
        self.patience = Patience() if patience is None else patience
        self._channel = channel
        self._interpreters = (python,) if python else INTERPRETERS  # those not found unusable
        self.standing: Standing | None = None
        self._opening = threading.Lock()
        self._session: Session | None = None
        self._heard_s = time.monotonic()
        self._has_answered = False  # whether a stream was open before
        self.trouble = ""  # why no stream can be opened; empty while there is one

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of the host."""
        session = self._session
        heard_s = self._heard_s if session is None else max(session.heard_s, self._heard_s)
        return PRESENCE.silent_s(heard_s)

    @property
    def is_open(self) -> bool:
        """Whether a stream is open; a connection that has just been cut may seem so."""
        session = self._session
        return session is not None and session.error is None

    def session(self) -> Session:
        """Return the open stream, opened if there is none."""
        with self._opening:
            if self._session is not None and self._session.error is None:
                return self._session
            self._heard_s = time.monotonic() - self.silent_s
            session = Session(self.host)
            session.heard_s = self._heard_s
            try:
                session.open(self._channel, self._interpreters[0])
                self._session = session
                session.wait_for_greeting()
            except TransportError as error:
                self.trouble = error.message
                is_final = error.ends_host or isinstance(error, HostKeyError)
                if error.transient or is_final or not self._has_answered:
                    raise
                # What it accepted before it may accept again: accounts are locked for seconds.
                raise ConnectError(error.message, hint=error.hint, sent=False) from error
            if self.standing is not None:
                self._repeat(self.standing, session)
            self.trouble, self._has_answered = "", True
            return session

    def _repeat(self, standing: Standing, session: Session) -> None:
        reply, request = Reply(), standing.request
        number = session.send(request, reply)
        _, result = self._next(session, request, reply, number, OPEN_S)
        try:
            standing.check(checked_answer(request.operation, result, host=self.host))
        except VolbenchError as error:
            session.close(error)
            raise

    def ask(self, request: Request[T]) -> T:
        """Return the result of a request; retry transient errors if that is safe."""
        return self._retried(request, lambda: self._ask_once(request))

    def ask_parts(self, request: Request[Iterator[Part]], take: Callable[[Part], None]) -> None:
        """Let a function take each part; a request's arguments may change between attempts."""

        def attempt() -> None:
            for part in self._parts(request):
                take(checked_part(request.operation, part, host=self.host))

        self._retried(request, attempt)

    def post(self, request: Request[T]) -> Callable[[], T]:
        """Send a request without waiting; the returned function waits for its result."""
        reply = Reply()
        session = self.session()
        number = session.send(request, reply)
        until_s = time.monotonic() + request.timeout_s

        def answer() -> T:
            result = self._next(session, request, reply, number, until_s - time.monotonic())[1]
            return checked_answer(request.operation, result, host=self.host)

        return answer

    def subscribe(self, request: Request[Any], receiver: Receiver) -> tuple[Session, int]:
        """Send a request whose parts go to a receiver, called by the channel's reader."""
        session = self.session()
        return session, session.send(request, receiver)

    def ask_with_clock(self, request: Request[T]) -> tuple[T, tuple[ClockReading, ...]]:
        """Return the result of a request, and readings of the host's clock, in one round trip."""

        def attempt() -> tuple[T, tuple[ClockReading, ...]]:
            session = self.session()
            session.wait_until_ready()
            arrived = threading.Semaphore(0)
            replies = [ClockReply(arrived) for _ in range(_CLOCK_READINGS)]
            for reply in replies:
                reply.sent_s = own_time()
                session.send(Request(clock), reply)
                time.sleep(_CLOCK_SPACING_S)
            answer = self.post(request)  # the host starts it after answering the clock requests
            until_s = time.monotonic() + _CLOCK_S
            for _ in replies:
                arrived.acquire(timeout=max(0.0, until_s - time.monotonic()))
            for reply in replies:
                if reply.error is not None:
                    raise reply.error
            readings = (reply.reading for reply in replies)
            return answer(), tuple(reading for reading in readings if reading is not None)

        return self._retried(request, attempt)

    def close(self) -> None:
        """Close the stream and release the channel; detached programs continue."""
        with self._opening:
            if self._session is not None:
                self._session.close(connection_lost(self.host, "", sent=True))
                self._session = None
        self._channel.close()

    def _retried(self, request: Request[Any], attempt: Callable[[], T]) -> T:
        def may_repeat(error: TransportError) -> bool:
            if isinstance(error, ConnectError):
                return request.repeatable or not error.sent
            return request.repeatable and error.transient

        while True:
            interpreters = self._interpreters
            try:
                return retry(attempt, may_repeat=may_repeat, patience=self.patience)
            except PythonError:
                if len(interpreters) == 1:
                    raise
                self._interpreters = interpreters[1:]

    def _ask_once(self, request: Request[T]) -> T:
        return self.post(request)()

    def _parts(self, request: Request[Any]) -> Iterator[object]:
        session, reply = self.session(), Reply()
        number = session.send(request, reply)
        try:
            while True:
                kind, value = self._next(session, request, reply, number, request.timeout_s)
                if kind == "end":
                    return
                yield value
        finally:
            session.forget(number, cancel=True)

    def _next(
        self, session: Session, request: Request[Any], reply: Reply, number: int, timeout_s: float
    ) -> tuple[str, object]:
        """Return the next message about a request; a host that is silent is abandoned."""
        until_s = time.monotonic() + timeout_s
        sent_s = until_s - request.timeout_s
        is_hung = self.patience.is_hung
        while True:
            left_s = until_s - time.monotonic()
            with suppress(queue.Empty):
                return reply.next(left_s if is_hung is None else min(left_s, _PING_S))
            if is_hung is None or left_s <= _PING_S or is_hung():
                break
            session.send(Request(clock), Receiver())  # a host that works answers at once
        waited_s = min(request.timeout_s, time.monotonic() - sent_s)
        error = replace(request, timeout_s=round(waited_s, 1)).exceeded(self.host)
        session.forget(number)
        if session.heard_s < sent_s:
            session.close(error, in_doubt=True)
        raise error


def _ending(text: str) -> str:
    """Return the end of a login shell's output: a banner precedes the reason."""
    return text if len(text) <= _MAX_SHOWN else f"... {text[-_MAX_SHOWN:]}"


def _in_words(text: str) -> str:
    """Return what the output of a login or an agent means, or its end where that is unknown."""
    said = text.lower()
    return next((_TROUBLES[each] for each in _TROUBLES if re.search(each, said)), _ending(text))


def _json_line(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
