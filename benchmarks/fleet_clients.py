"""Simulated hosts, by hundreds, for measuring what their controller costs.

One agent on this machine carries out each request of the controller once, fio included, for the
host that asks first. All others that make the same request get the same reply under their own
names, and what its programs push at the same time: the hosts are simulated, the controller's
streams are not. The hosts live in a process of their own, so that the controller's CPU and memory
are its own.

A request is the same if it differs in numbers, checksums and names only, and its host has made as
many of the kind before.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import socket
import struct
import sys
import threading
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Protocol

from volbench.execute.channels import OnEnd, OnOutput
from volbench.execute.program_bundle import FLAGS, START, agent_program

FIRST = "vm000"
"""Host under whose name requests are carried out, unless another is named; all have its length."""

_LENGTH = struct.Struct("!I")
_VARIABLE = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")
_MARK = re.compile(rb"volbench-[0-9a-f]+")
_LIMIT_BYTES = 64 * 1024**2


class SimulatedChannel:
    """Channel to a simulated host.

    Args:
        host: its name.
        path: socket of the simulator.
    """

    def __init__(self, host: str, path: str) -> None:
        self.host = host
        self._path = path

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SimulatedStream:
        """Start the agent."""
        del argv, on_end, within_s
        stream = SimulatedStream(self._path, on_output)
        stream.send(self.host.encode())
        return stream

    def close(self) -> None:
        """Do nothing."""


class SimulatedStream:
    """A stream of a simulated host; one thread reads all, as it does over SSH."""

    _selector = DefaultSelector()
    _reader: threading.Thread | None = None
    _lock = threading.Lock()

    def __init__(self, path: str, on_output: OnOutput) -> None:
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
        """Send the bootstrap, or one request."""
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def close(self, *, in_doubt: bool = False) -> None:
        """End the stream."""
        del in_doubt
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)


class Output(Protocol):
    """Where the output of a stream goes."""

    def write(self, data: bytes) -> None:
        """Write a part of it."""

    def close(self) -> None:
        """End it."""


@dataclass
class _Record:
    """Reply to a request: messages without number."""

    began_s: float = field(default_factory=time.monotonic)
    messages: list[tuple[float, str]] = field(default_factory=list)
    is_over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, key: str, value: object) -> None:
        """Record a message."""
        text = json.dumps({key: value}, separators=(",", ":"))
        self.messages.append((time.monotonic() - self.began_s, text))
        self.is_over = key != "part"
        self.changed.set()
        self.changed = asyncio.Event()


class Simulator:
    """The hosts.

    Args:
        round_trip_s: to each of them.
        first: host under whose name requests are carried out.
    """

    def __init__(self, round_trip_s: float, first: str = FIRST) -> None:
        self._delay_s = round_trip_s
        self._first = first
        self._records: dict[tuple[str, int], _Record] = {}
        self._by_number: dict[int, _Record] = {}
        self._agent: asyncio.StreamWriter | None = None
        self._starting = asyncio.Lock()

    async def serve(self, reader: asyncio.StreamReader, writer: Output) -> None:
        """Serve one stream: the name of its host, the bootstrap, then requests."""
        name = (await _message(reader)).decode()
        mark = _MARK.search(await _message(reader))
        if mark is None:
            raise RuntimeError("no bootstrap")
        async with self._starting:
            if self._agent is None:
                await self._begin()
        writer.write(b"\n%s ready 3.11\n" % mark[0])
        seen: Counter[str] = Counter()
        replies = set()
        with suppress(asyncio.IncompleteReadError):
            while True:
                request = _unpacked(json.loads(await _message(reader)))
                task = asyncio.create_task(self._reply(name, request, seen, writer))
                replies.add(task)
                task.add_done_callback(replies.discard)
                task.add_done_callback(_end_at_errors)
        writer.close()

    async def _begin(self) -> None:
        """Start the agent."""
        bootstrap = agent_program().bootstrap("mark")
        argv = [sys.executable, *FLAGS, START.format(len(bootstrap))]
        pipe = asyncio.subprocess.PIPE
        agent = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, limit=_LIMIT_BYTES
        )
        if agent.stdin is None or agent.stdout is None:
            raise RuntimeError("the agent has no pipes")
        agent.stdin.write(bootstrap)
        while (words := (await agent.stdout.readline()).split())[1:2] != [b"ready"]:
            if words[1:2] == [b"need"]:
                agent.stdin.write(b"#\n" + agent_program().data)
        self._agent = agent.stdin
        self._reading = asyncio.create_task(self._read(agent.stdout))
        self._reading.add_done_callback(_end_at_errors)

    async def _read(self, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            message = _unpacked(json.loads(line))
            number = message.pop("id")
            if number:  # 0 only tries the link
                ((key, value),) = message.items()
                self._by_number[number].add(key, value)

    async def _reply(
        self,
        name: str,
        request: dict[str, Any],
        seen: Counter[str],
        writer: Output,
    ) -> None:
        """Reply as the agent does, no sooner after the request than it did."""
        received_s, number, sent = time.monotonic(), request.pop("id"), 0
        text = json.dumps(request)
        key = _VARIABLE.sub("#", text.replace(name, self._first))
        seen[key] += 1
        place = key, seen[key]
        await asyncio.sleep(self._delay_s)
        if request.get("op") == "clock":
            writer.write(b'{"id":%d,"result":%.9f}\n' % (number, time.time()))
            return
        if "op" not in request:  # a cancellation: the watch ends with its program
            return
        if place not in self._records:
            self._records[place] = self._carry_out(text.replace(name, self._first))
        record = self._records[place]
        while True:
            while sent < len(record.messages):
                delay_s, message = record.messages[sent]
                await asyncio.sleep(max(0.0, min(delay_s, 1.0) - (time.monotonic() - received_s)))
                sent += 1
                own = message.replace(self._first, name)
                writer.write(f'{{"id":{number},{own[1:]}\n'.encode())
            if record.is_over:
                return
            await record.changed.wait()

    def _carry_out(self, text: str) -> _Record:
        """Let the agent carry out a request of the first host."""
        if self._agent is None:
            raise RuntimeError("there is no agent")
        record, number = _Record(), len(self._by_number) + 1
        self._by_number[number] = record
        self._agent.write(f'{{"id":{number},{text[1:]}\n'.encode())
        return record


def _unpacked(message: dict[str, Any]) -> dict[str, Any]:
    if "z" not in message:
        return message
    unpacked: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(message["z"])))
    return unpacked


def _end_at_errors(task: asyncio.Task[None]) -> None:
    """End the simulation instead of leaving a request without a reply."""
    if not task.cancelled() and (error := task.exception()) is not None:
        traceback.print_exception(error)
        os._exit(1)


async def _message(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


async def _serve(path: str, round_trip_s: float) -> None:
    server = await asyncio.start_unix_server(Simulator(round_trip_s).serve, path, backlog=1000)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], float(sys.argv[2])))
