"""SSH connection to a host, through its jump hosts.

There is one SSH transport for each hop, tunnelled through the one before it; each host on the route
is verified and authenticated to from here. Dead links are detected by the kernel (TCP_USER_TIMEOUT)
and by keep-alives.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko

from volbench.errors import ConnectError, TransportError, VolbenchError
from volbench.execute.shell.channel import connection_lost
from volbench.execute.ssh.authentication import authenticate
from volbench.execute.ssh.host_keys import KnownHosts
from volbench.execute.ssh.ssh_route import Hop, Route

logging.getLogger("paramiko").addHandler(logging.NullHandler())  # errors are raised, not logged

CONNECT_S = 15.0
OPEN_S = 10.0
"""A session on an open connection costs a host next to nothing: a late one means trouble."""

USER_TIMEOUT_S = 15
KEEPALIVE_S = 5
WINDOW_BYTES = 8 * 1024**2
LOGINS_AT_ONCE = 6
"""At one sshd. Its default MaxStartups, 10:30:100, refuses some of eleven (sshd_config(5)), and it
counts a login until it has been told of its end."""

CHANNELS_AT_ONCE = 6
"""On one connection. The default MaxSessions is 10 (sshd_config(5)); a session counts until sshd
has been told of its end."""

_RSA = ("rsa-sha2-512", "rsa-sha2-256")
_PROHIBITED = 1
"""SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254, 5.1)."""


class LoginLimits:
    """Semaphores that limit concurrent logins to each sshd."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, int], threading.Semaphore] = {}
        self._lock = threading.Lock()

    def of(self, hop: Hop) -> threading.Semaphore:
        """Return the semaphore of the sshd at a hop."""
        with self._lock:
            return self._limits.setdefault(
                (hop.address, hop.port), threading.Semaphore(LOGINS_AT_ONCE)
            )


class Connection:
    """An open connection to a host.

    Attributes:
        host: its name.
        in_doubt: whether a command did not end in time: the connection itself may be dead.
    """

    def __init__(self, host: str, transports: list[paramiko.Transport]) -> None:
        self.host = host
        self.in_doubt = False
        self._transports = transports
        self._channels = threading.Semaphore(CHANNELS_AT_ONCE)

    @property
    def is_alive(self) -> bool:
        """Whether nothing is known to be wrong with any hop."""
        return all(transport.is_active() for transport in self._transports)

    @contextmanager
    def channel(self, within_s: float) -> Iterator[paramiko.Channel]:
        """Open a channel; it is closed in the end.

        Args:
            within_s: the command's own deadline.

        Raises:
            ConnectError: none could be opened. A dead connection is closed.
        """
        if not self._channels.acquire(timeout=within_s):
            raise _busy(self.host, f"the commands before it did not end in {within_s:g} s")
        try:
            timeout_s = min(within_s, OPEN_S / 2 if self.in_doubt else OPEN_S)
            try:
                channel = self._transports[-1].open_session(
                    window_size=WINDOW_BYTES, timeout=timeout_s
                )
            except paramiko.ChannelException as error:  # the connection is fine
                raise _busy(self.host, error.text) from error
            except (paramiko.SSHException, EOFError, OSError) as error:
                self.close()
                raise connection_lost(self.host, str(error), sent=False) from error
            self.in_doubt = False
            try:
                yield channel
            finally:
                self.close_channel(channel)
        finally:
            self._channels.release()

    def close_channel(self, channel: paramiko.Channel) -> None:
        """Close a channel; if even that hangs, the whole connection."""
        if channel.closed:
            channel.close()  # of its pipe
            return
        closer = threading.Thread(target=channel.close, daemon=True)
        closer.start()
        closer.join(2.0)
        if closer.is_alive():
            self.close()

    def close(self) -> None:
        """Close every hop, the last one first."""
        for transport in reversed(self._transports):
            transport.close()


def connect(
    route: Route, *, known: KnownHosts, logins: LoginLimits, within_s: float = CONNECT_S
) -> Connection:
    """Connect to a host, hop by hop.

    Args:
        route: to the host.
        known: host keys on record.
        logins: shared by all connections to the same sshd.
        within_s: time limit for each hop.

    Raises:
        ConnectError: a host cannot be reached, or closed the connection.
        HostKeyError: a host is unknown, or its key has changed.
        AuthError: authentication failed.
    """
    transports: list[paramiko.Transport] = []
    try:
        for hop in route.hops:
            with logins.of(hop):
                before = transports[-1] if transports else None
                transport = _verified(hop, before, known=known, within_s=within_s)
                transports.append(transport)
                authenticate(transport, hop)
            transport.set_keepalive(KEEPALIVE_S)
    except BaseException:
        Connection(route.target.name, transports).close()
        raise
    return Connection(route.target.name, transports)


def _busy(host: str, reason: str) -> ConnectError:
    return ConnectError(
        f"{host} opens no session: {reason}",
        hint="its sshd may allow too few at once (MaxSessions), or be out of processes",
        context={"host": host, "sent": False},
    )


def _verified(
    hop: Hop, before: paramiko.Transport | None, *, known: KnownHosts, within_s: float
) -> paramiko.Transport:
    """Return a transport to a host that has shown a key on record."""
    begun = time.monotonic()
    wire = _wire(hop, within_s) if before is None else _tunnel(hop, before, within_s)
    left_s = max(1.0, within_s - (time.monotonic() - begun))
    try:
        transport = paramiko.Transport(wire, default_window_size=WINDOW_BYTES)
        transport.banner_timeout = left_s
        transport.auth_timeout = CONNECT_S
    except (paramiko.SSHException, EOFError, OSError) as error:
        wire.close()
        raise _closed_early(hop, error) from error
    try:
        _prefer(transport, known.kinds(hop))
        transport.start_client(timeout=left_s)
        key = transport.get_remote_server_key()
        known.check(hop, kind=key.get_name(), blob=key.asbytes())
    except paramiko.ssh_exception.IncompatiblePeer as error:
        _drop(transport, wire)
        raise TransportError(
            f"{hop.name} and volbench have no SSH algorithm in common: {error}",
            hint="its sshd is very old, or very strict: see `sshd -T` there",
            context={"host": hop.name},
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        _drop(transport, wire)
        raise _closed_early(hop, error) from error
    except VolbenchError:
        _drop(transport, wire)
        raise
    return transport


def _drop(transport: paramiko.Transport, wire: socket.socket | paramiko.Channel) -> None:
    transport.close()
    wire.close()


def _prefer(transport: paramiko.Transport, kinds: tuple[str, ...]) -> None:
    """Prefer the kinds of host key that are on record, as ssh does."""
    wanted = [name for kind in kinds for name in (_RSA if kind == "ssh-rsa" else (kind,))]
    options = transport.get_security_options()
    usual = list(options.key_types)
    first = [name for name in wanted if name in usual]
    options.key_types = [*first, *(name for name in usual if name not in first)]


def _wire(hop: Hop, within_s: float) -> socket.socket:
    """Open a TCP connection that ends when nothing is acknowledged for a while."""
    try:
        wire = socket.create_connection((hop.address, hop.port), timeout=within_s)
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise _unreachable(hop, "its name cannot be resolved at the moment") from error
        raise TransportError(
            f"{hop.name} has no address: {hop.address} cannot be resolved ({error.strerror})",
            hint="correct `address` in the inventory, or HostName in ~/.ssh/config",
            context={"host": hop.name, "address": hop.address},
        ) from error
    except TimeoutError as error:
        raise _unreachable(hop, f"no answer in {within_s:.0f} s") from error
    except OSError as error:
        raise _unreachable(hop, error.strerror or str(error)) from error
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_S * 1000)
    return wire


def _tunnel(hop: Hop, before: paramiko.Transport, within_s: float) -> paramiko.Channel:
    """Open a tunnel to a host from the one before it."""
    try:
        return before.open_channel(
            "direct-tcpip",
            (hop.address, hop.port),
            ("127.0.0.1", 0),
            window_size=WINDOW_BYTES,
            timeout=within_s,
        )
    except paramiko.ChannelException as error:
        if error.code == _PROHIBITED:
            raise TransportError(
                f"the jump host before {hop.name} does not forward connections",
                hint="set AllowTcpForwarding in its sshd_config, or choose another jump host",
                context={"host": hop.name},
            ) from error
        raise _unreachable(hop, f"from the jump host before it: {error.text}") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise _unreachable(hop, f"from the jump host before it: {error}") from error


def _unreachable(hop: Hop, reason: str) -> ConnectError:
    return ConnectError(
        f"{hop.name} cannot be reached at {hop.address} port {hop.port}: {reason}",
        hint="check that the host is up, that its sshd runs, and the network between",
        context={"host": hop.name, "address": hop.address, "port": hop.port, "sent": False},
    )


def _closed_early(hop: Hop, error: Exception) -> ConnectError:
    return ConnectError(
        f"{hop.name} closed the connection before the login: {error or type(error).__name__}",
        hint="its sshd may be starting, or busy (MaxStartups); see its log",
        context={"host": hop.name, "sent": False},
    )
