"""Pod channel: commands in a container, by exec of the API server.

An exec does not report the end of its input to the command (``v4.channel.k8s.io``), so a command
with input gets its length as an argument. A command whose connection has broken runs on until the
end of its input.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from volbench.errors import InputError, TransportError, VolbenchError
from volbench.execute.shell.channel import (
    CommandEnd,
    Countdown,
    OnEnd,
    Sink,
    TimeLimit,
    connection_lost,
)
from volbench.kubernetes.cluster import Cluster
from volbench.kubernetes.exec_socket import CHUNK_BYTES, ExecSocket, not_started
from volbench.kubernetes.pod_status import why_ended
from volbench.model.campaign.host import Pod

# Run a command on the first bytes of standard input: their number, command
_FEED = 'n=$1; shift; head -c "$n" | "$@"'

# Run a command with standard error open until its end: containerd ends the input of a command whose
# standard output or standard error is closed
_HOLD = 'exec 9>&2; exec "$@"'

_CONNECT_S = 20.0
_PING_S = 30.0  # Load balancers drop connections that are idle for a few minutes (Azure: 4)


class PodChannel:
    """A pod of a campaign."""

    def __init__(self, host: str, pod: Pod, cluster: Cluster) -> None:
        self.host = host
        self.execs = 0
        self._pod = pod
        self._cluster = cluster

    def execute(
        self, argv: Sequence[str], stdin: bytes, sink: Sink, *, limit: TimeLimit
    ) -> CommandEnd:
        """Run a command once, to completion."""
        countdown = Countdown(limit)
        if stdin:
            argv = ["sh", "-c", _FEED, "sh", str(len(stdin)), *argv]
        streams = self._connect(argv, _noting(sink, countdown), countdown, has_input=bool(stdin))
        rest = memoryview(stdin)
        try:
            while not streams.has_ended:
                if countdown.left_s == 0:
                    raise limit.exceeded(self.host)
                has_data, has_room = streams.wait(countdown.left_s, to_send=len(rest) > 0)
                if has_data:
                    streams.receive()
                elif has_room:
                    part, rest = bytes(rest[:CHUNK_BYTES]), rest[CHUNK_BYTES:]
                    streams.send(part)
            return streams.end()
        finally:
            streams.close()

    def open(
        self, argv: Sequence[str], on_output: Sink, on_end: OnEnd, *, limit: TimeLimit
    ) -> PodStream:
        """Start a command whose input stays open."""
        argv = ["sh", "-c", _HOLD, "sh", *argv]
        streams = self._connect(argv, on_output, Countdown(limit), has_input=True)
        return PodStream(self.host, streams, on_end)

    def close(self) -> None:
        """Do nothing: connections belong to commands."""

    def _connect(
        self, argv: Sequence[str], sink: Sink, countdown: Countdown, *, has_input: bool
    ) -> ExecSocket:
        """Start a command in the pod, unless that is another one by now."""
        name, place = self._pod.name, self._cluster
        if reason := why_ended(place.read("Pod", name), self._pod.uid):
            raise PodEndedError(self.host, name, reason)
        self.execs += 1
        try:
            socket = place.open_exec(
                name,
                argv,
                container=self._pod.container,
                has_input=has_input,
                timeout_s=min(countdown.left_s, _CONNECT_S),
            )
        except InputError as error:
            if reason := why_ended(place.read("Pod", name), self._pod.uid):
                raise PodEndedError(self.host, name, reason) from error
            raise not_started(self.host, error.message) from error
        return ExecSocket(self.host, socket, sink)


class PodStream:
    """A running command whose input stays open; a thread reads its output.

    The API server also reports success when it loses the kubelet. The input of such a command ends
    only with this stream, so its success is a lost connection.
    """

    def __init__(self, host: str, streams: ExecSocket, on_end: OnEnd) -> None:
        self._host = host
        self._streams = streams
        self._on_end: OnEnd | None = on_end
        threading.Thread(target=self._read, name="pod", daemon=True).start()

    def send(self, data: bytes) -> None:
        """Write to the command's standard input."""
        self._streams.send(data)

    def close(self, *, in_doubt: bool = False) -> None:
        """End the command, by the end of its input, without a further call of its receivers."""
        del in_doubt
        self._on_end = None
        self._streams.abort()

    def _read(self) -> None:
        end: CommandEnd | VolbenchError
        try:
            while not self._streams.has_ended:
                if self._streams.wait(_PING_S)[0]:
                    self._streams.receive()
                else:
                    self._streams.ping()
            end = self._streams.end()
            if not end.status:
                end = connection_lost(self._host, "its stream ended", sent=True)
        except VolbenchError as error:
            end = error
        finally:
            self._streams.close()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(end)


class PodEndedError(TransportError):
    """A pod has ended and can run nothing any more."""

    def __init__(self, host: str, pod: str, reason: str) -> None:
        super().__init__(
            f"the pod of {host} has ended: {reason}",
            hint="see what happened: kubectl get events "
            f"--field-selector involvedObject.name={pod}",
        )
        self.host = host
        self.reason = reason


def _noting(sink: Sink, countdown: Countdown) -> Sink:
    """Return a sink that restarts a countdown of silence."""

    def take(part: bytes) -> None:
        countdown.note_output()
        sink(part)

    return take
