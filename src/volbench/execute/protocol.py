"""Executor and process protocols: the engine's complete interface to a host.

Guard, probes and campaigns use only this interface, so they work alike on local and remote hosts.
Programs are started from argument lists, never through a shell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from volbench.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from volbench.execute.agent.facts import Survey
    from volbench.execute.agent.files import NamedFile

P = ParamSpec("P")
T = TypeVar("T")

FOREVER_S = 30 * 86400.0  # 30 days: longer than any run


class OperationError(TransportError):
    """An operation could not be carried out on a host.

    Args:
        kind: see `execute.agent.agent_error.AgentError`.
        host: name of the host; empty for the controller's own machine.
    """

    def __init__(self, kind: str, reason: str, *, host: str = "") -> None:
        super().__init__(f"{host}: {reason}" if host else reason)
        self.kind = kind
        self.reason = reason


@dataclass(frozen=True)
class Completed:
    """Result of a completed process; undecodable bytes of `stdout` and `stderr` are replaced."""

    argv: tuple[str, ...]
    exit_status: int
    stdout: str
    stderr: str


class HeldDevice(Protocol):
    """A block device that is open with O_EXCL, which prevents mounting it."""

    @property
    def number(self) -> tuple[int, int]:
        """(major, minor) of the device."""

    def digest(self, size_bytes: int) -> str:
        """Return the SHA-256 of the first and last MiB: `BLANK` for zeros, "" on a read error."""

    def close(self) -> None:
        """Close the device."""


@dataclass(frozen=True)
class ClockReading:
    """Reading of a host's clock between two readings of the controller's; seconds since 1970."""

    sent_s: float  # time of the request, by the controller's clock
    remote_s: float  # time reported by the host
    received_s: float  # arrival of the response, by the controller's clock
    steady_s: float = 0.0  # the host's monotonic clock with `remote_s`


@dataclass(frozen=True)
class Supervision:
    """Duties of the supervisor of a program besides its start; see `agent.supervisor.launch`."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets by variable
    hold: Sequence[Mapping[str, object]] = ()  # block devices to hold open, as they must be
    # maximum runtime, enforced on the host if the program outlives its controller
    longest_s: float = FOREVER_S
    gate_s: float | None = None  # longest wait at its start gate; None for no gate
    sampling: Mapping[str, object] | None = None  # what to sample beside it; None for nothing
    # files for `Process.first_line`; the first appears when the program begins
    followed: Sequence[str] = ()
    is_temporary: bool = False  # whether its folder is removed soon after its end


class Process(Protocol):
    """A started process."""

    @property
    def pid(self) -> int:
        """Process id on its host."""

    @property
    def handle(self) -> str:
        """Argument of `Executor.find` to reattach; empty if it ends with its controller."""

    @property
    def lost(self) -> str:
        """Reason why its exit was not observed; empty otherwise."""

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of its host; 0 if the host always responds."""

    def poll(self) -> int | None:
        """Return the exit status (negative: signal number), or None while the process runs."""

    def read_output(self) -> str:
        """Return the standard output since the last call."""

    def skip(self, *, output_bytes: int = 0, sample_bytes: int = 0) -> None:
        """Skip the first bytes of output and samples, which an earlier controller has read."""

    def read_samples(self) -> str:
        """Return the output of its sampler since the last call."""

    @property
    def is_sampled(self) -> bool:
        """Whether its sampler may print more, also after its end."""

    def stop_sampling(self) -> None:
        """End its sampler after one last sample, if the program has ended."""

    def first_line(self, path: str) -> str | None:
        """Return the first line of a followed file as last reported; None if empty or missing.

        Only for a process with a handle; the files of others are read by their executor.
        """

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if the process is running."""

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, or None after `timeout_s` or when a followed file appeared."""


class SharedLocks(Protocol):
    """Locks on devices that executors of several hosts share, such as pods of one node."""

    def answer(self, verb: str, name: str, key: str) -> str:
        """Take, free, show, join or leave a lock, as `agent.locks` does on one machine.

        Returns:
            Keys of other campaigns that hold it, separated by line ends; for ``show`` the holder.
        """


class Executor(Protocol):
    """Interface to a host: each operation is one round trip, and answers all that is asked at once.

    What only looks at the host is a function of the agent, which `ask` and `stream` call there;
    they raise OperationError where it cannot be carried out. TransportError: a host does not answer
    as it should, or what is missing or unreadable there. RefusedError: a device cannot be opened.
    """

    host: str  # its name
    # whether programs outlive the controller there, with the handle that `start` names
    is_remote: bool
    # locks that are not kept on the host itself; None to keep them there
    shared_locks: SharedLocks | None

    @property
    def silent_s(self) -> float:
        """Seconds since the last response of the host; 0 if it always responds."""

    @property
    def trouble(self) -> str:
        """Reason why the host cannot be connected to again; empty while it is connected."""

    def clock(self) -> tuple[ClockReading, ...]:
        """Return readings of the host's clock, in one round trip; none if it has no clock."""

    def survey(self) -> tuple[Survey, tuple[ClockReading, ...]]:
        """Return the facts of the host, and readings of its clock.

        Raises:
            TransportError: the host does not respond.
        """

    def ask(self, operation: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of the agent on the host; see `execute.agent.operations`.

        Its arguments are what JSON can carry; a `snapshot` is made there.

        Raises:
            OperationError: it could not be carried out.
            TransportError: the host does not answer, or with something else than the function does.
        """

    def stream(
        self,
        operation: Callable[P, Iterator[T]],
        take: Callable[[T], None],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Pass the parts of a generator of the agent to a function, until its end or an error.

        Args:
            take: called with each part, in this thread; it ends the generator by raising.

        Raises:
            OperationError: it could not be carried out.
            TransportError: the host does not answer.
        """

    def run(
        self, argv: Sequence[str], *, texts: Sequence[str] = (), timeout_s: float = 60.0
    ) -> Completed:
        """Run a program to completion with LC_ALL=C and no input.

        Args:
            texts: contents of small temporary files, whose paths follow the arguments; they are
                removed when the program ends, even if the controller is killed meanwhile.

        Raises:
            TransportError: the program is missing, or was killed after `timeout_s`, or the files
                cannot be written.
        """

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        stderr: str,
        files: Mapping[str, str] | None = None,
        supervision: Supervision | None = None,
        on_intent: Callable[[str], None] | None = None,
    ) -> Process:
        """Start a program in its own session, with standard error redirected to the file `stderr`.

        Args:
            cwd: working directory, and TMPDIR.
            stderr: path of the file for standard error.
            files: path to text of small files to write before, each atomically, with their folders;
                a path that ends with a slash is a folder.
            on_intent: called right before the start with the path of the control folder, which is
                the handle of a program that outlives the controller.

        Raises:
            TransportError: a file cannot be written, or the program cannot be started.
        """

    def find(self, handle: str, *, followed: Sequence[str] = ()) -> Process:
        """Reattach to a process that an earlier controller started.

        Raises:
            TransportError: the host does not support reattaching.
        """

    def hold(self, path: str) -> HeldDevice | None:
        """Open a block device exclusively; None where only a run's own program can hold it.

        Raises:
            RefusedError: the device cannot be opened.
        """

    def owe(self, files: Sequence[NamedFile]) -> None:
        """Let the host remove these files, instead of the last, if it loses the controller."""

    def work_folder(self, folder: str, *, name: str) -> str:
        """Return the directory itself on the controller's machine, elsewhere one of a unique name.

        That may contain ``/``, and may not exist until the first file is written to it.
        """

    def fetch_work_folder(self, path: str, folder: str) -> None:
        """Copy all files of a work folder to the controller's, each atomically.

        Raises:
            TransportError: a file is unreadable on the host, or was corrupted in transit.
        """

    def remove_work_folder(self, path: str) -> None:
        """Remove a work folder recursively; never the controller's own directory."""

    def wait_when_unreachable(
        self, *, unless: Callable[[], bool], is_hung: Callable[[], bool]
    ) -> None:
        """Extend the retries of an unreachable host; either ends them, `is_hung` also a request."""

    def close(self) -> None:
        """Release the host; running processes continue."""
