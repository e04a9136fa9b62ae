"""Ends of programs in a pod, and what is sent to them."""

import json
import resource
import socket as sockets
from collections.abc import Iterator
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from websocket import ABNF

from tests.waiting import until
from volbench.errors import ConnectError, InputError, VolbenchError
from volbench.execute.channels import ProgramEnd
from volbench.extensions.kubernetes.manifests import ENDING_STATUS
from volbench.extensions.kubernetes.pod_executor import PodStream, allow_connections, program_end

Ends = SimpleQueue[ProgramEnd | VolbenchError]
EXITED = {
    "reason": "NonZeroExitCode",
    "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
}
MISSING = 'OCI runtime exec failed: exec: "python3": executable file not found in $PATH: unknown'


def status(**fields: object) -> bytes:
    """Return the Status object of a failure."""
    return json.dumps({"status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("answer", "expected"), [(status(**EXITED), 7), (status(message=MISSING), 127)]
)
def test_an_exit_status_is_read(answer: bytes, expected: int) -> None:
    """A program that is missing ends as a shell reports it."""
    assert program_end("h", answer, b"words").status == expected


@pytest.mark.parametrize("message", ["error dialing backend: refused", "pod does not exist"])
def test_a_program_that_was_not_started_may_be_started_again(message: str) -> None:
    """A node out of reach, or one that has just been restarted, answers later."""
    with pytest.raises(ConnectError, match=message) as caught:
        program_end("h", status(message=message), b"")
    assert caught.value.sent is False


def test_nothing_is_started_in_a_pod_that_ends() -> None:
    """The agent would find fio killed, without the reason that the cluster has a moment later."""
    cause = {"reason": "ExitCode", "message": str(ENDING_STATUS)}
    with pytest.raises(ConnectError, match="being stopped") as caught:
        program_end("h", status(details={"causes": [cause]}), b"")
    assert caught.value.sent is False


@pytest.mark.parametrize("answer", [b"", b'{"status": "Success"}'])
def test_success_without_an_end_of_input_is_a_lost_connection(answer: bytes) -> None:
    """An agent ends with its input only: the API server has lost its kubelet."""
    with pytest.raises(ConnectError, match="connection to h was lost") as caught:
        program_end("h", answer, b"")
    assert caught.value.sent is True


@pytest.mark.parametrize(
    ("limits", "raised"), [((64, 4096), (2200, 4096)), ((64, -1), (2200, -1)), ((2200, 2200), None)]
)
def test_connections_need_open_files(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised: tuple[int, int] | None
) -> None:
    """The limit is raised as far as the system allows, and only if it is too low."""
    changes: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda *change: changes.append(change))
    allow_connections(1000)
    assert changes == ([(resource.RLIMIT_NOFILE, raised)] if raised else [])
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (64, 1024))
    with pytest.raises(InputError, match="1000 pods need 2200 open files"):
        allow_connections(1000)


class Socket:
    """A web socket with messages that have arrived."""

    def __init__(self, *messages: bytes) -> None:
        self.sock, self._other = sockets.socketpair()
        self._messages = list(messages)
        self.sent: list[bytes] = []
        self._other.send(b"something to read")

    def recv_data_frame(self, *, control_frame: bool) -> tuple[int, Any]:
        """Return the next message, and then the end."""
        assert control_frame
        if self._messages:
            return ABNF.OPCODE_BINARY, SimpleNamespace(data=self._messages.pop(0))
        return ABNF.OPCODE_CLOSE, SimpleNamespace(data=b"")

    def send_binary(self, data: bytes) -> None:
        """Note what is sent."""
        self.sent.append(data)

    def shutdown(self) -> None:
        """Close both ends."""
        self.sock.close()
        self._other.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Return a queue of ends, of which there must be one at most."""
    queue: Ends = SimpleQueue()
    yield queue
    assert queue.empty()


def test_output_and_errors_are_separate_streams(ends: Ends) -> None:
    """Output arrives in its order, standard error with the end."""
    output = bytearray()
    socket: Any = Socket(b"\1one ", b"\2wrong", b"\1two", b"\3" + status(**EXITED))
    PodStream("h", socket, output.extend, ends.put)
    assert ends.get(timeout=300) == ProgramEnd(7, "wrong")
    assert output == b"one two"


def test_a_defect_of_one_stream_ends_it_alone(ends: Ends) -> None:
    """One thread reads all: others go on, also after one whose message is not complete."""

    def fail(_data: bytes) -> None:
        raise ValueError("not JSON")

    partial: Any = Socket()
    partial.recv_data_frame = Mock(side_effect=BlockingIOError)
    waiting = PodStream("slow", partial, fail, ends.put)
    PodStream("bad", cast("Any", Socket(b"\1x")), fail, ends.put)
    bad = ends.get(timeout=300)
    assert isinstance(bad, ConnectError)
    assert "not JSON" in str(bad)
    output = bytearray()
    PodStream("h", cast("Any", Socket(b"\1one", b"\3" + status(**EXITED))), output.extend, ends.put)
    assert ends.get(timeout=300) == ProgramEnd(7, "")
    assert output == b"one"
    waiting.close()
    until(lambda: partial.sock.fileno() < 0)


def test_a_stream_closed_after_it_was_read_ends_once(ends: Ends) -> None:
    """One that has more to read, and is closed before its turn comes again, stops no other."""
    busy: Any = Socket()
    busy.recv_data_frame = lambda **_: (ABNF.OPCODE_PING, SimpleNamespace(data=b""))
    stream = PodStream("busy", busy, lambda _: None, ends.put)
    read = stream.read

    def read_and_close() -> bool:
        more = read()
        stream.close()
        return more

    stream.read = read_and_close  # type: ignore[method-assign]  # of this object alone
    until(lambda: busy.sock.fileno() < 0)
    answer = Socket(b"\1one", b"\3" + status(**EXITED))
    PodStream("h", cast("Any", answer), lambda _: None, ends.put)
    assert ends.get(timeout=300) == ProgramEnd(7, "")


def test_input_is_sent_in_pieces_that_do_not_block(ends: Ends) -> None:
    """Each piece is a message to standard input; nothing is lost between them."""
    socket: Any = Socket()
    socket.recv_data_frame = lambda **_: (ABNF.OPCODE_PING, SimpleNamespace(data=b""))
    stream = PodStream("h", socket, lambda _: None, ends.put)
    data = bytes(range(256)) * 40
    stream.send(data)
    stream.close()
    assert {message[:1] for message in socket.sent} == {b"\0"}
    assert b"".join(message[1:] for message in socket.sent) == data
    assert max(map(len, socket.sent)) <= 4097
