"""Kept shell of a host: requests and subscriptions over one long-lived session.

Requests run concurrently on the host; each has its own time limit. A broken session fails its
pending requests and ends its subscriptions; the next request opens a new session. No program that
was started detached depends on it.
"""

from __future__ import annotations

import itertools
import secrets
import shlex
import string
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from volbench.errors import TransportError, VolbenchError
from volbench.execute.protocol import ClockReading
from volbench.execute.session.frames import Frame, FrameReader
from volbench.execute.shell.channel import (
    Channel,
    CommandEnd,
    Countdown,
    Stream,
    TimeLimit,
    connection_lost,
)
from volbench.execute.shell.posix_scripts import NOW
from volbench.execute.shell.remote_script import Collected, ScriptAnswer, ScriptCall, check_words

_OPEN_S = 30.0
_ERROR_LIMIT_BYTES = 1024**2
_CLOCK_S = 20.0
_CLOCK_SPACING_S = 0.01  # Pause between two clock requests, longer than `date` takes

MAX_INPUT_BYTES = 32_768  # Longest input of a request: the shell may read it byte by byte


OnFrame = Callable[[Frame], None]
OnEnd = Callable[[VolbenchError], None]


class NoShellError(TransportError):
    """The login shell did not start a shell."""


def script_text(name: str) -> str:
    """Return the text of a script of this package."""
    path = files("volbench.execute.session").joinpath(f"{name}.sh")
    return path.read_text(encoding="utf-8")


@dataclass
class _Receiver:
    """Receiver of the frames of one number."""

    on_frame: OnFrame
    on_end: OnEnd


class Session:
    """One open session of a kept shell."""

    def __init__(self, host: str) -> None:
        self.mark = f"volbench-{secrets.token_hex(8)}"  # random text known only to this session
        self.heard_s = time.monotonic()  # monotonic time of the last output
        self.error: VolbenchError | None = None  # reason of its end; None while it is open
        self._host = host
        self._frames = FrameReader(host, self.mark)
        self._receivers: dict[int, _Receiver] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._stream: Stream | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the shell has started, so that requests are answered at once."""
        return self._frames.is_open

    def open(self, channel: Channel) -> None:
        """Start the shell and define its functions."""
        argv = ["sh", "-c", 'echo "$1"; exec sh', "sh", self.mark]
        limit = TimeLimit("opening a shell", _OPEN_S)
        self._stream = channel.open(argv, self._receive, self._end, limit=limit)
        self.send(f"m={self.mark}\n{NOW}\n{script_text('serve')}")

    def expect(self, on_frame: OnFrame, on_end: OnEnd) -> int:
        """Register a receiver and return its number."""
        with self._lock:
            if self.error is not None:
                raise self.error
            number = next(self._numbers)
            self._receivers[number] = _Receiver(on_frame, on_end)
            return number

    def forget(self, number: int) -> None:
        """Drop further frames of a number."""
        with self._lock:
            self._receivers.pop(number, None)

    def send(self, text: str) -> None:
        """Send shell commands, every word of which is quoted."""
        if self._stream is None:
            raise connection_lost(self._host, "", sent=False)
        try:
            with self._sending:
                self._stream.send(text.encode("utf-8", "surrogateescape"))
        except TransportError as error:
            # An account without a shell may be gone before anything could be sent.
            reason = error if self._frames.is_open else self._without_shell()
            self.close(reason)
            raise reason from error

    def _without_shell(self) -> TransportError:
        return NoShellError(
            f"the login shell on {self._host} started no shell",
            hint="log in there and try a command",
        )

    def close(self, error: VolbenchError, *, in_doubt: bool = False) -> None:
        """Close the session and end all that waits for it.

        Args:
            in_doubt: whether the connection itself may be dead.
        """
        if self._stream is not None:
            self._stream.close(in_doubt=in_doubt)
        self._fail(error)

    def _receive(self, part: bytes) -> None:
        """Process output; called by the channel's reader."""
        self.heard_s = time.monotonic()
        try:
            for frame in self._frames.feed(part):
                with self._lock:
                    receiver = self._receivers.get(frame.number)
                if receiver is not None:
                    receiver.on_frame(frame)
        except VolbenchError as error:
            self.close(error)

    def _end(self, end: CommandEnd | VolbenchError) -> None:
        if isinstance(end, VolbenchError):
            self._fail(end)
        elif self._frames.is_open:
            self._fail(connection_lost(self._host, "its shell ended", sent=True))
        else:
            self._fail(self._without_shell())

    def _fail(self, error: VolbenchError) -> None:
        with self._lock:
            if self.error is not None:
                return
            self.error = error
            receivers = list(self._receivers.values())
            self._receivers.clear()
        for receiver in receivers:
            receiver.on_end(error)


@dataclass
class _Reply:
    """Reply to a request, filled by the channel's reader."""

    collected: Collected = field(default_factory=Collected)
    errors: bytearray = field(default_factory=bytearray)
    status: int = 0
    error: VolbenchError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def take(self, frame: Frame) -> None:
        """Process a frame."""
        match frame.kind:
            case "o":
                self.collected(frame.payload)
            case "e":
                self.errors += frame.payload[: _ERROR_LIMIT_BYTES - len(self.errors)]
            case "x":
                text = frame.payload.strip()
                self.status = int(text) if text.isdigit() and len(text) < 4 else 255
                self.ended.set()

    def fail(self, error: VolbenchError) -> None:
        """End the reply with an error."""
        self.error = error
        self.ended.set()


@dataclass
class _Exchange:
    """One request for the time, and its response."""

    sent_s: float = 0.0
    readings: list[ClockReading] = field(default_factory=list)
    error: VolbenchError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def take(self, frame: Frame) -> None:
        """Process the response; it may be whole seconds."""
        received_s = time.time()
        seconds, _, fraction = frame.payload.decode("ascii", "replace").strip().partition(".")
        if seconds.isdecimal() and len(seconds) < 12:
            is_fine = fraction.isdecimal() and len(fraction) < 12
            remote_s = float(f"{seconds}.{fraction}") if is_fine else int(seconds) + 0.5
            resolution_s = 0.0 if is_fine else 1.0
            self.readings.append(ClockReading(self.sent_s, remote_s, received_s, resolution_s))
        self.ended.set()

    def fail(self, error: VolbenchError) -> None:
        """End the exchange with an error."""
        self.error = error
        self.ended.set()


class KeptShell:
    """Requests and subscriptions of a host, in one session that is reopened when broken."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._opening = threading.Lock()
        self._session: Session | None = None
        self._answered_s = time.monotonic()

    @property
    def heard_s(self) -> float:
        """Monotonic time of the last output of the host."""
        session = self._session
        return self._answered_s if session is None else max(session.heard_s, self._answered_s)

    def session(self) -> Session:
        """Return the open session, opened if there is none."""
        with self._opening:
            if self._session is None or self._session.error is not None:
                if self._session is not None:
                    self._answered_s = self.heard_s
                session = Session(self._channel.host)
                session.heard_s = self._answered_s
                session.open(self._channel)
                self._session = session
            return self._session

    def post(self, call: ScriptCall) -> Callable[[], ScriptAnswer]:
        """Send a script without waiting for its result.

        Args:
            call: the script, with at most `MAX_INPUT_BYTES` of input; its sink is not used.

        Returns:
            A function that waits for the result; see `call`.
        """
        session, reply = self.session(), _Reply()
        countdown, sent_s = Countdown(call.limit), time.monotonic()
        number = session.expect(reply.take, reply.fail)
        try:
            session.send(_request_line(number, call))
        except TransportError:
            session.forget(number)
            raise

        def answer() -> ScriptAnswer:
            reply.ended.wait(countdown.left_s)
            session.forget(number)
            if reply.error is not None:
                raise reply.error
            if not reply.ended.is_set():
                error = call.limit.exceeded(self._channel.host)
                if session.heard_s < sent_s:
                    session.close(error, in_doubt=True)
                raise error
            stderr = reply.errors.decode("utf-8", "replace")
            return ScriptAnswer(reply.status, reply.collected.content, stderr, session.mark)

        return answer

    def call(self, call: ScriptCall) -> ScriptAnswer:
        """Run a script and return its result."""
        return self.post(call)()

    def subscribe(
        self, arguments: Sequence[str], on_frame: OnFrame, on_end: OnEnd, *, sudo: bool
    ) -> Session:
        """Start `watch.sh`, whose frames are passed on until its end or that of the session.

        Args:
            arguments: of the script, without the number.
            on_frame: receives its frames; called by the channel's reader.
            sudo: whether to run it by sudo.
        """
        session = self.session()
        number = session.expect(on_frame, on_end)
        prefix = ["sudo", "-n", "--"] if sudo else []
        argv = [*prefix, "sh", "-c", script_text("watch"), "watch", str(number), *arguments]
        session.send(f"{shlex.join(argv)} </dev/null &\n")
        return session

    def read_clock(self, count: int) -> tuple[ClockReading, ...]:
        """Return `count` readings of the host's clock, requested a few milliseconds apart."""
        session = self.session()
        exchanges = [_Exchange() for _ in range(count)]
        for exchange in exchanges:
            number = session.expect(exchange.take, exchange.fail)
            exchange.sent_s = time.time()
            session.send(f'printf "%s\\n" "{number} c $(now)"\n')
            exchange.ended.wait(_CLOCK_SPACING_S if session.is_ready else _CLOCK_S)
        countdown = Countdown(TimeLimit("reading the clock", _CLOCK_S))
        for exchange in exchanges:
            exchange.ended.wait(countdown.left_s)
            if exchange.error is not None:
                raise exchange.error
        return tuple(reading for exchange in exchanges for reading in exchange.readings)

    def close(self) -> None:
        """Close the session; programs on the host continue."""
        with self._opening:
            if self._session is not None:
                self._session.close(connection_lost(self._channel.host, "", sent=True))
                self._session = None


_PLAIN = frozenset(string.ascii_letters.encode() + string.digits.encode() + b" .,:;=/+-_[]{}()#@")


def _request_line(number: int, call: ScriptCall) -> str:
    """Return the shell command of a request."""
    words = ["request", str(number), call.script, *call.arguments]
    check_words(words)
    if not call.stdin:
        return f"{shlex.join(words)} </dev/null &\n"
    encoded = "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in call.stdin)
    return f"printf %b '{encoded}' | {shlex.join(words)} &\n"
