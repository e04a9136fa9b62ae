"""A host on which Runs go on without us: what `SshExecutor` does, and programs that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from volbench.execute.detached import PATIENCE_S, DetachedProcess, Order, launch
from volbench.execute.protocol import FOREVER_S, Completed
from volbench.execute.ssh.executor import SshExecutor
from volbench.execute.ssh.pool import ConnectionPool
from volbench.execute.ssh.retry import Patience
from volbench.model.campaign.host import Host


class RemoteExecutor(SshExecutor):
    """A machine of the inventory.

    Args:
        host: the machine; it is added to the pool.
        pool: of connections, shared with other machines.

    Raises:
        InputError: the way to it can't be found.
    """

    def __init__(self, host: Host, pool: ConnectionPool) -> None:
        super().__init__(host, pool)
        self._starts: Counter[str] = Counter()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        stdin: bytes = b"",
        sudo: bool | None = None,
        repeat: bool = True,
    ) -> Completed:
        """Run a program to its end; unlike its parent, again when the line broke.

        All that Runs need is without harm when it is done twice.

        Raises:
            TransportError: the program is missing, or did not end in `timeout_s` (it is killed).
            AuthError: sudo asks for a password.
        """
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, sudo=sudo, repeat=repeat)

    def be_patient(self, *, unless: Callable[[], bool]) -> None:
        """From now on, wait long for the machine when it is out of reach."""
        self._pool.be_patient(Patience(tries=10_000, begin_within_s=PATIENCE_S, unless=unless))

    def start(
        self, argv: Sequence[str], *, cwd: str, stderr: str, longest_s: float = FOREVER_S
    ) -> DetachedProcess:
        """Start a program in its own session, standard error to the file `stderr`.

        What is known of it lies in a hidden folder of `cwd`, named after that file.

        Raises:
            TransportError: it could not be started.
        """
        self._starts[stderr] += 1
        again = f".{self._starts[stderr]}" if self._starts[stderr] > 1 else ""
        control = self.handle_of(stderr) + again
        order = Order(argv, cwd, stderr, control, longest_s)
        return launch(_AsRoot(self) if self.needs_sudo(argv) else self, order)

    def handle_of(self, stderr: str) -> str:
        """Return the control folder of a program that will be started first with that file."""
        path = PurePosixPath(stderr)
        return str(path.with_name(f".{path.stem}"))

    def was_started(self, handle: str) -> bool:
        """Tell whether a control folder says that its program was started."""
        return self.stat(f"{handle}/start") is not None

    def find(self, handle: str) -> DetachedProcess:
        """Return a program that an earlier controller started."""
        return DetachedProcess(_AsRoot(self) if self.inventory_host.sudo else self, handle)


class _AsRoot:
    """What a detached program needs of its machine, every command started by ``sudo -n``.

    A signal reaches only what the same user started: who starts a program as root must look after
    it as root.
    """

    def __init__(self, other: RemoteExecutor) -> None:
        self.host = other.host
        self._other = other

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0) -> Completed:
        """Run a program to its end as root."""
        return self._other.run(argv, timeout_s=timeout_s, sudo=True)

    def read_text(self, path: str) -> str | None:
        """Return a file's text, or None when it can't be read."""
        return self._other.read_text(path)
