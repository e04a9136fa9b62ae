"""Executor of a pod over an exec channel, and the connections to the clusters of several pods.

Each message of an exec's web socket begins with the number of its stream (``v4.channel.k8s.io`` and
``v5``; see k8s.io/apimachinery/pkg/util/remotecommand). How a program ends is a Status object. An
exec does not report the end of its input to the program, so a stream that is closed ends it by the
end of the connection.
"""

from __future__ import annotations

import json
import re
import resource
import select
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from selectors import EVENT_READ, DefaultSelector
from socket import SHUT_RDWR, socket, socketpair
from typing import TYPE_CHECKING, Any

from volbench.errors import ConnectError, InputError, TransportError, VolbenchError, quoted
from volbench.execute.agent.facts import Survey
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import (
    STDERR_LIMIT_BYTES,
    OnEnd,
    OnOutput,
    ProgramEnd,
    connection_lost,
)
from volbench.execute.protocol import ClockReading
from volbench.extensions.kubernetes.cluster import DENIAL_S, Cluster, missing_client, open_cluster
from volbench.extensions.kubernetes.leases import LeaseLocks
from volbench.extensions.kubernetes.manifests import ENDING_STATUS, START, WORK_MOUNT
from volbench.extensions.kubernetes.pod import Pod, require_pod
from volbench.extensions.kubernetes.pod_status import why_ended
from volbench.model.campaign.host import Host

try:
    from websocket import ABNF, WebSocketException
except ImportError as error:
    raise missing_client(error) from error
if TYPE_CHECKING:
    from websocket import WebSocket

_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_CHUNK_BYTES = 4096  # A socket that poll calls writable takes one page without blocking.
_CONNECT_S = 20.0  # A busy API server needs seconds; no verdict depends on it.
_LOOK_S = 1.0  # Between looks at which streams are silent; no verdict depends on it.
_MESSAGES = 64  # of one stream, before others are read; no verdict depends on it
_PING_S = 30.0  # Load balancers drop connections that are idle for a few minutes (Azure: 4).
# Of the campaign, beside connections: 16 were seen. Noticed by:
# tests/extensions/kubernetes/test_pod_channel.py::test_connections_need_open_files
_OWN_FILES = 200
_SEND_S = 60.0  # A connection that takes nothing for so long is dead: TCP retries as long.
_MISSING = re.compile(r"executable file not found|no such file or directory", re.IGNORECASE)


class PodEndedError(TransportError):
    """A pod has ended and can run nothing any more."""

    ends_host = True

    def __init__(self, host: str, pod: Pod, reason: str) -> None:
        super().__init__(
            f"the pod of {host} has ended: {reason}",
            hint=f"see the events: kubectl -n {quoted(pod.namespace)} get events "
            f"--field-selector involvedObject.name={quoted(pod.name)}",
        )
        self.host = host
        self.reason = reason


class PodChannel:
    """A pod of a campaign; see `channels.Channel`."""

    def __init__(self, host: str, pod: Pod, cluster: Cluster) -> None:
        self.host = host
        self._pod = pod
        self._cluster = cluster

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> PodStream:
        """Start a program in the pod, unless that is another pod by now; see `Channel.open`.

        Raises:
            PodEndedError: the pod or its container has ended, with the reason.
            ConnectError: the API server or the node is out of reach.
        """
        self._require_pod()
        try:
            socket = self._cluster.open_exec(
                self._pod.name,
                [*START, *argv],
                container=self._pod.container,
                timeout_s=min(within_s, _CONNECT_S),
            )
        except InputError as error:
            self._require_pod(error)
            raise _not_started(self.host, error.message) from error
        return PodStream(self.host, socket, on_output, on_end)

    def _require_pod(self, error: VolbenchError | None = None) -> None:
        if reason := why_ended(self._cluster.read("Pod", self._pod.name), self._pod.uid):
            raise PodEndedError(self.host, self._pod, reason) from error

    def close(self) -> None:
        """Do nothing: connections belong to streams."""


class _Reader:
    """Thread that reads the output of programs in all pods: a thread each would fight for the GIL.

    Only this thread changes what is selected.
    """

    def __init__(self) -> None:
        self._selector = DefaultSelector()
        self._new: deque[PodStream] = deque()
        woken, self._waker = socketpair()
        woken.setblocking(False)
        self._selector.register(woken, EVENT_READ)
        threading.Thread(target=self._read, args=[woken], name="pods", daemon=True).start()

    def add(self, stream: PodStream) -> None:
        """Read a stream until its end."""
        self._new.append(stream)
        self._waker.send(b"\0")

    def _read(self, woken: socket) -> None:
        again: list[PodStream] = []  # streams that have more to read now
        while True:
            keys = [key for key, _ in self._selector.select(0 if again else _LOOK_S)]
            ready = dict.fromkeys([*again, *(key.data for key in keys if key.data)])
            with suppress(BlockingIOError):
                woken.recv(_CHUNK_BYTES)
            while self._new:
                ready[stream := self._new.popleft()] = None
                self._selector.register(stream, EVENT_READ, stream)
            more = [stream for stream in ready if stream.read()]
            ended = [stream for stream in ready if stream.has_ended]  # others close them, too
            again = [stream for stream in more if stream not in ended]
            for stream in ended:
                self._selector.unregister(stream)
                stream.end()
            for key in self._selector.get_map().values():
                if key.data:
                    key.data.keep_alive()


@cache
def _reader() -> _Reader:
    return _Reader()


class PodStream:
    """Standard input of a program in a pod, whose output `_Reader` reads; see `channels.Stream`.

    Reading and writing take turns: a TLS connection must not be used by two threads at a time.
    """

    def __init__(self, host: str, socket: WebSocket, on_output: OnOutput, on_end: OnEnd) -> None:
        self._host = host
        self._socket = socket
        inner: Any = socket.sock
        self._inner = inner
        self._on_output = on_output
        self._on_end: OnEnd | None = on_end
        self._turn = threading.Lock()
        self._errors = bytearray()
        self._status = b""
        self._end: ProgramEnd | VolbenchError | None = None
        self._ping_s = time.monotonic() + _PING_S
        self.has_ended = False  # whether there is nothing more to read
        self._descriptor: int = inner.fileno()  # also once it is closed
        _reader().add(self)

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return self._descriptor

    def send(self, data: bytes) -> None:
        """Write to standard input, all of it.

        Raises:
            ConnectError: the connection is broken.
        """
        poller = select.poll()
        try:
            poller.register(self._inner, select.POLLOUT)
            for start in range(0, len(data), _CHUNK_BYTES):
                if not poller.poll(_SEND_S * 1000):
                    raise connection_lost(self._host, "it does not accept input", sent=True)
                with self._turn:
                    self._socket.send_binary(bytes([_STDIN]) + data[start : start + _CHUNK_BYTES])
        except (WebSocketException, OSError, ValueError) as error:
            raise connection_lost(self._host, str(error), sent=True) from error

    def close(self, *, in_doubt: bool = False) -> None:
        """End the program by the end of the connection, without a further call of its receivers."""
        del in_doubt
        self._on_end = None
        self._abort()

    def _abort(self) -> None:
        self.has_ended = True
        with suppress(OSError):  # closed already
            self._inner.shutdown(SHUT_RDWR)

    def read(self) -> bool:
        """Process messages that have arrived; return whether there may be more."""
        try:
            for _ in range(_MESSAGES):
                if self.has_ended or not self._receive():
                    return False
        except VolbenchError as error:
            self._end = error
        except Exception as error:  # noqa: BLE001 - a defect of one stream must not end all others
            self._end = connection_lost(self._host, repr(error), sent=True)
        else:
            return True
        self.has_ended = True
        return False

    def keep_alive(self) -> None:
        """Send something if nothing has come for a while."""
        if time.monotonic() < self._ping_s:
            return
        self._ping_s = time.monotonic() + _PING_S
        with suppress(WebSocketException, OSError), self._turn:
            self._socket.ping()  # the next message tells whether that has worked

    def end(self) -> None:
        """Report how the program has ended."""
        end = self._end
        try:
            end = end or program_end(self._host, self._status, bytes(self._errors))
        except VolbenchError as error:
            end = error
        self._abort()
        self._socket.shutdown()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(end)

    def _next(self) -> tuple[int, Any] | None:
        """Return a message that has arrived; None if there is none, or only a part of one."""
        with self._turn:
            timeout_s = self._inner.gettimeout()
            self._inner.settimeout(0)
            try:
                code, frame = self._socket.recv_data_frame(control_frame=True)
            except (ssl.SSLWantReadError, BlockingIOError):  # the socket keeps the part
                return None
            finally:
                with suppress(OSError):  # closed by its end
                    self._inner.settimeout(timeout_s)
        return code, frame

    def _receive(self) -> bool:
        """Process one message; return whether there was one."""
        try:
            message = self._next()
        except (WebSocketException, OSError) as error:
            self.has_ended = True
            if not self._status:
                raise connection_lost(self._host, str(error), sent=True) from error
            return False
        if message is None:
            return False
        self._ping_s = time.monotonic() + _PING_S
        code, frame = message
        if code == ABNF.OPCODE_CLOSE:
            self.has_ended = True
        elif code == ABNF.OPCODE_BINARY and len(frame.data) > 1:
            number, data = frame.data[0], frame.data[1:]
            if number == _STDOUT and self._on_end is not None:
                self._on_output(data)
            elif number == _STDERR:
                self._errors += data[: STDERR_LIMIT_BYTES - len(self._errors)]
            elif number == _STATUS:
                self._status += data
        return True


def program_end(host: str, status: bytes, stderr: bytes) -> ProgramEnd:
    """Return the end of a program by its Status object.

    The API server also reports success when it loses the kubelet. The input of a program ends only
    with its stream, so success is a lost connection.

    Raises:
        ConnectError: the connection ended before the program, or the program was not started:
            the node does not answer, or the container is being restarted.
    """
    if not status:
        raise connection_lost(host, "", sent=True)
    text = stderr.decode("utf-8", "replace")
    try:
        answer = json.loads(status)
        if answer.get("status") == "Success":
            raise connection_lost(host, "its stream ended", sent=True)
        causes = (answer.get("details") or {}).get("causes") or []
        codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
        if codes and int(codes[0]) == ENDING_STATUS:
            raise _not_started(host, "its container is being stopped")
        if codes:
            return ProgramEnd(int(codes[0]), text)
        message = str(answer.get("message", ""))
    except (ValueError, AttributeError, KeyError, TypeError):
        message = status.decode("utf-8", "replace")
    if _MISSING.search(message):
        return ProgramEnd(127, message)
    raise _not_started(host, message)


def _not_started(host: str, message: str) -> ConnectError:
    """Return the error of a program that was not started, in the words of the cluster."""
    return ConnectError(
        f"a program could not be started on {host}: {message}",
        hint="check its node and its pod: kubectl get nodes; kubectl describe pod",
        sent=False,
    )


if TYPE_CHECKING:
    from volbench.execute.connect import Connect, HostKeyPolicy


class PodExecutor(AgentExecutor):
    """Executor of a pod, whose locks are objects of its cluster."""

    def __init__(self, name: str, pod: Pod, cluster: Cluster) -> None:
        super().__init__(PodChannel(name, pod, cluster), work_folder=WORK_MOUNT)
        self.shared_locks = LeaseLocks(cluster, node=pod.node, campaign=pod.campaign)
        self._pod = pod

    def survey(self) -> tuple[Survey, tuple[ClockReading, ...]]:
        """Return the facts of the machine of the node: pods of one node share its limits."""
        answer, readings = super().survey()
        return answer._replace(machine_id=self._pod.machine or self._pod.node), readings


class PodConnections(ExitStack[None]):
    """Connections to the clusters of several pods, opened when used and closed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._clusters: dict[tuple[str, str], Cluster] = {}

    def cluster(self, pod: Pod) -> Cluster:
        """Return the connection to the cluster of a pod."""
        key = pod.context, pod.namespace
        if key not in self._clusters:
            self._clusters[key] = open_cluster(context=pod.context, namespace=pod.namespace)
            self._clusters[key].denial_patience_s = DENIAL_S
            self.callback(self._clusters[key].close)
        return self._clusters[key]


def allow_connections(pods: int) -> None:
    """Raise the limit of open files of this process to what the connections to pods need."""
    needed = _OWN_FILES + 2 * pods  # two: a new connection is opened before a broken one is closed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError(
            f"connections to {pods} pods need {needed} open files, but the limit is {hard}",
            hint="measure fewer pods, or raise the limit of your user (LimitNOFILE of the service, "
            "or nofile in /etc/security/limits.conf)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@contextmanager
def open_pods(hosts: Sequence[Host], _host_keys: HostKeyPolicy) -> Iterator[Connect]:
    """Yield the executors of hosts with pods; see `connect.CHANNELS`."""
    allow_connections(len(hosts))
    with PodConnections() as connections:

        def connect(host: Host) -> PodExecutor:
            pod = require_pod(host)
            return PodExecutor(host.name, pod, connections.cluster(pod))

        yield connect
