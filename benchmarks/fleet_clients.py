"""Simulated hosts, by hundreds, for measuring what their controller costs.

One shell on this machine runs each request of the controller once, fio included, for the host that
asks first. All others that make the same request get the same answer under their own names, and
what its programs push at the same time: the hosts are simulated, the controller's sessions are not.
The hosts live in a process of their own, so that the controller's CPU and memory are its own.

A request is the same if it differs in numbers, checksums and names only. Looks at files are
answered one by one, however the controller combines them, as they were after as many other
requests.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import socket
import struct
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from selectors import EVENT_READ, DefaultSelector

from volbench.execute.session.look_ahead import LOOKS
from volbench.execute.shell.channel import CommandEnd, OnEnd, Sink, TimeLimit, connection_lost

FIRST = "vm000"
"""Host under whose name requests are run; all names are of its length."""

_LENGTH = struct.Struct("!I")
_VARIABLE = re.compile(rb"[0-9a-f]*[0-9][0-9a-f]*")
_REQUEST = re.compile(rb"(?:^|(?<=\| ))request (\d+) ")
_WATCH = re.compile(rb"' watch (\d+) ")
_CLOCK = re.compile(rb'printf "%s\\n" "(\d+) c ')
_PART_BYTES = 2100

Look = tuple[str, ...]
"""Script and arguments of a look."""


class SimulatedChannel:
    """Channel to a simulated host.

    Args:
        host: its name.
        path: socket of the simulator.
    """

    def __init__(self, host: str, path: str) -> None:
        self.host = host
        self._path = path

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Fail: everything goes through the kept shell."""
        del argv, stdin, sink
        raise connection_lost(self.host, f"no session for {limit.command}", sent=False)

    def open(
        self, argv: Sequence[str], on_output: Sink, on_end: OnEnd, *, limit: TimeLimit
    ) -> SimulatedStream:
        """Start the shell."""
        del limit, on_end
        stream = SimulatedStream(self._path, on_output)
        stream.send(f"{self.host} {argv[-1]}".encode())
        return stream

    def close(self) -> None:
        """Do nothing."""


class SimulatedStream:
    """A session of a simulated host; one thread reads all, as it does over SSH."""

    _selector = DefaultSelector()
    _reader: threading.Thread | None = None
    _lock = threading.Lock()

    def __init__(self, path: str, on_output: Sink) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        cls = type(self)
        with self._lock:
            self._selector.register(self._socket, EVENT_READ, on_output)
            if cls._reader is None:
                cls._reader = threading.Thread(target=cls._read, daemon=True)
                cls._reader.start()

    @classmethod
    def _read(cls) -> None:
        while True:
            for key, _ in cls._selector.select(0.05):
                part = key.fileobj.recv(65536)  # type: ignore[union-attr]  # a socket
                if part:
                    key.data(part)
                else:
                    cls._selector.unregister(key.fileobj)

    def send(self, data: bytes) -> None:
        """Send one request."""
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def close(self, *, in_doubt: bool = False) -> None:
        """End the session."""
        del in_doubt
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)


@dataclass
class _Record:
    """Answer to a request: lines without number."""

    looks: list[Look] = field(default_factory=list)
    state: int = 0
    is_batch: bool = False
    began_s: float = field(default_factory=time.monotonic)
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        """Whether the answer is complete."""
        return bool(self.lines) and self.lines[-1][1].startswith(b"x ")

    @property
    def output(self) -> bytes:
        """Standard output."""
        parts = (line[2:] for _, line in self.lines if line.startswith(b"o "))
        return b"".join(base64.b64decode(part) for part in parts)

    def add(self, line: bytes) -> None:
        """Record a line."""
        self.lines.append((time.monotonic() - self.began_s, line))
        self.changed.set()
        self.changed = asyncio.Event()

    async def finish(self) -> None:
        """Wait until the answer is complete."""
        while not self.is_over:
            await self.changed.wait()


@dataclass(frozen=True)
class _Found:
    """Answer to a look."""

    output: bytes
    status: bytes


@dataclass
class _Session:
    """Session of a simulated host, and what it has asked for."""

    writer: asyncio.StreamWriter
    name: bytes
    mark: bytes
    seen: Counter[bytes] = field(default_factory=Counter)
    state: int = 0

    def key(self, data: bytes) -> tuple[bytes, int]:
        """Return what identifies a request among all hosts."""
        text = _VARIABLE.sub(b"#", data)
        self.seen[text] += 1
        return text, self.seen[text]

    def push(self, number: bytes, line: bytes) -> None:
        """Send a line of an answer."""
        self.writer.write(b"%s %s\n" % (number, line))


class Simulator:
    """The hosts.

    Args:
        round_trip_s: to each of them.
    """

    def __init__(self, round_trip_s: float) -> None:
        self._delay_s = round_trip_s
        self._records: dict[tuple[bytes, int], _Record] = {}
        self._by_number: dict[bytes, _Record] = {}
        self._looks: dict[Look, dict[int, _Found]] = defaultdict(dict)
        self._requested: dict[tuple[Look, int], _Record] = {}
        self._attributes = b""
        self._state = 0
        self._shell: asyncio.StreamWriter | None = None
        self._mark = b""
        self._starting = asyncio.Lock()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one session."""
        name, mark = (await _message(reader)).split()
        functions = await _message(reader)
        async with self._starting:
            if self._shell is None:
                self._mark = mark
                await self._begin(functions)
        writer.write(mark + b"\n")
        session, answers = _Session(writer, name, mark), set()
        with suppress(asyncio.IncompleteReadError):
            while True:
                data = await _message(reader)
                task = asyncio.create_task(self._answer(session, data))
                answers.add(task)
                task.add_done_callback(answers.discard)
                task.add_done_callback(_end_at_errors)
        writer.close()

    async def _begin(self, functions: bytes) -> None:
        """Start the shell."""
        pipe = asyncio.subprocess.PIPE
        shell = await asyncio.create_subprocess_exec("sh", stdin=pipe, stdout=pipe, limit=2**20)
        if shell.stdin is None or shell.stdout is None:
            raise RuntimeError("the shell has no pipes")
        self._shell = shell.stdin
        self._shell.write(functions)
        self._reading = asyncio.create_task(self._read(shell.stdout))
        self._reading.add_done_callback(_end_at_errors)

    async def _read(self, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            number, _, rest = line.rstrip(b"\n").partition(b" ")
            record = self._by_number[number]
            if rest.startswith(b"x ") and record.looks:
                self._learn(record, rest[2:])
            record.add(rest)

    def _learn(self, record: _Record, status: bytes) -> None:
        """Take the answers to looks apart."""
        if not record.is_batch:
            self._looks[record.looks[0]][record.state] = _Found(record.output, status)
            return
        parts = re.split(rb"\n%s (\d{1,3})\n" % re.escape(self._mark), record.output)
        if len(parts) != 2 * len(record.looks) + 3:
            raise RuntimeError(f"{len(parts)} parts of {len(record.looks)} looks: {status!r}")
        self._attributes = parts[0]
        for look, output, ended in zip(record.looks, parts[2::2], parts[3::2], strict=False):
            self._looks[look][record.state] = _Found(output, ended)

    def _run(self, session: _Session, data: bytes, record: _Record) -> None:
        """Let the shell run a request of a host."""
        own = b"%d" % (100_000_000 + len(self._by_number))
        self._by_number[own] = record
        text = _renamed(data, session.name).replace(session.mark, self._mark)
        found = _numbered(text)
        if found is None or self._shell is None:
            raise RuntimeError(f"no request: {data[:80]!r}")
        self._shell.write(text[: found.start(1)] + own + text[found.end(1) :])

    async def _answer(self, session: _Session, data: bytes) -> None:
        found = _numbered(data)
        if found is None:
            return
        number = found[1]
        if _CLOCK.search(data):
            await asyncio.sleep(self._delay_s)
            session.push(number, b"c %.9f" % time.time())
        elif looks := _looks_in(data, session.name):
            await self._look(session, number, data, looks)
        else:
            await self._repeat(session, number, data)

    async def _look(self, session: _Session, number: bytes, data: bytes, looks: list[Look]) -> None:
        """Answer looks, which the shell takes where nobody has taken them in this state."""
        state, is_batch = session.state, _is_batch(data)
        await asyncio.sleep(self._delay_s)
        is_new = any((look, state) not in self._requested for look in looks)
        if is_new and (state >= self._state or any(not self._looks[look] for look in looks)):
            record = _Record(looks, state, is_batch)
            self._requested |= {(look, state): record for look in looks}
            self._run(session, data, record)
        for look in looks:
            if pending := self._requested.get((look, state)):
                await pending.finish()
        found = [self._nearest(look, state) for look in looks]
        output, status = found[0].output, found[0].status
        if is_batch:
            parts = [_Found(self._attributes, b"0"), *found]
            texts = [b"%s\n%s %s\n" % (each.output, self._mark, each.status) for each in parts]
            output, status = b"".join(texts), b"0"
        self._send_output(session, number, output)
        session.push(number, b"x " + status)

    def _nearest(self, look: Look, state: int) -> _Found:
        answers = self._looks[look]
        earlier = [known for known in answers if known <= state]
        return answers[max(earlier) if earlier else min(answers)]

    def _send_output(self, session: _Session, number: bytes, output: bytes) -> None:
        text = output.replace(self._mark, session.mark).replace(FIRST.encode(), session.name)
        for first in range(0, len(text), _PART_BYTES):
            part = base64.b64encode(text[first : first + _PART_BYTES])
            session.push(number, b"o " + part)

    async def _repeat(self, session: _Session, number: bytes, data: bytes) -> None:
        """Repeat what the shell answers, no sooner after the request than it did."""
        received_s, sent, key = time.monotonic(), 0, session.key(data)
        session.state += 1
        await asyncio.sleep(self._delay_s)
        if key not in self._records:
            self._records[key] = _Record()
            self._state = max(self._state, session.state)
            self._run(session, data, self._records[key])
        record = self._records[key]
        while True:
            while sent < len(record.lines):
                delay_s, line = record.lines[sent]
                await asyncio.sleep(max(0.0, min(delay_s, 1.0) - (time.monotonic() - received_s)))
                sent += 1
                if line.startswith(b"x "):
                    self._send_output(session, number, record.output)
                if not line.startswith(b"o "):
                    session.push(number, line.replace(FIRST.encode(), session.name))
            if record.is_over:
                return
            await record.changed.wait()


def _renamed(data: bytes, name: bytes) -> bytes:
    """Return a request under the name of the first host, with the checksums of its texts."""
    text, end = data.replace(name, FIRST.encode()), b" </dev/null &\n"
    if not (text.startswith(b"request ") and text.endswith(end)):
        return text
    words = shlex.split(text.removesuffix(end).decode())
    before = ["", *shlex.split(data.removesuffix(end).decode())]
    for at, word in enumerate(words):
        if word == sha256(before[at].encode()).hexdigest():
            words[at] = sha256(words[at - 1].encode()).hexdigest()
    return shlex.join(words).encode() + end


def _end_at_errors(task: asyncio.Task[None]) -> None:
    """End the simulation instead of leaving a request without an answer."""
    if not task.cancelled() and (error := task.exception()) is not None:
        traceback.print_exception(error)
        os._exit(1)


def _numbered(data: bytes) -> re.Match[bytes] | None:
    """Return the match whose first group is the number of a request."""
    return _REQUEST.search(data) or _WATCH.search(data) or _CLOCK.search(data)


def _is_batch(data: bytes) -> bool:
    found = _REQUEST.match(data)
    return found is not None and data[found.end() :].startswith(b"'s_0=")


def _looks_in(data: bytes, name: bytes) -> list[Look]:
    """Return the looks of a request; none of any other request."""
    if found := _REQUEST.match(data):
        return _parsed(data[found.end() :].replace(name, FIRST.encode()).decode())
    return []


@lru_cache(maxsize=4096)
def _parsed(text: str) -> list[Look]:
    """Return the looks of a request of the first host without its number."""
    script, *arguments = shlex.split(text)
    if script in LOOKS:
        return [_shared([script, *arguments[: arguments.index("</dev/null")]])]
    if not script.startswith("s_0="):
        return []
    scripts, looks = {}, []
    for line in script.split("\n"):
        words = shlex.split(line)
        name, _, content = words[0].partition("=")
        if content:
            scripts[f"${name}"] = content
        elif name == "look" and words[1] in scripts:
            looks.append(_shared([scripts[words[1]], *words[2:]]))
    return looks


def _shared(words: Sequence[str]) -> Look:
    """Return a look in a form that all hosts share."""
    return words[0], *(_VARIABLE.sub(b"#", word.encode()).decode() for word in words[1:])


async def _message(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


async def _serve(path: str, round_trip_s: float) -> None:
    server = await asyncio.start_unix_server(Simulator(round_trip_s).serve, path, backlog=1000)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], float(sys.argv[2])))
