"""Public-key authentication to an SSH host.

Keys and certificates come from the agent and from files. Passwords are not supported.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import AgentSSH
from paramiko.pkey import PublicBlob, UnknownKeyType

from volbench.errors import AuthError, ConnectError
from volbench.execute.ssh.ssh_route import Hop

_AGENT_TIMEOUT_S = 15.0  # A hung agent; a hardware key waits for a touch. Noticed by: no test.


class _Agent(AgentSSH):
    """SSH agent on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(_AGENT_TIMEOUT_S)
            sock.connect(path)
            self._connect(sock)  # type: ignore[attr-defined]  # missing from the stub
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        self._close()  # type: ignore[attr-defined]  # missing from the stub


class _Keys:
    """Candidate keys for a hop, with notes on unusable ones."""

    def __init__(self, hop: Hop) -> None:
        self._hop = hop
        self.notes: list[str] = []
        self.tried: list[str] = []
        self._agent: _Agent | None = None
        if hop.agent:
            try:
                self._agent = _Agent(hop.agent)
            except (OSError, paramiko.SSHException) as error:
                self.notes.append(f"the agent at {hop.agent} does not answer: {error}")

    def close(self) -> None:
        """Disconnect from the agent."""
        if self._agent is not None:
            self._agent.close()

    def __iter__(self) -> Iterator[paramiko.PKey]:
        """Yield agent keys that match the key files, then other agent keys, then the files."""
        agent_keys = list(self._agent.get_keys()) if self._agent is not None else []
        public_blobs = {path: _public_blob(path) for path in self._hop.key_files}
        from_agent = set()
        for path, blob in public_blobs.items():
            for key in agent_keys:
                if blob is not None and key.asbytes() == blob:
                    from_agent.add(path)
                    yield from self._with_certificate(key, path)
        if not self._hop.identities_only:
            for key in agent_keys:
                if key.asbytes() not in public_blobs.values():
                    self.tried.append(f"agent key {key.comment or key.fingerprint}")
                    yield key
        for path in public_blobs:
            if path not in from_agent and (loaded := self._load(path)) is not None:
                yield from self._with_certificate(loaded, path)

    def _load(self, path: Path) -> paramiko.PKey | None:
        """Return the key of a file without its certificate; None, with a note, if unusable."""
        try:
            key = paramiko.PKey.from_path(path)
        except (paramiko.PasswordRequiredException, TypeError):
            self.notes.append(f"{path} has a passphrase: run ssh-add {path}")
        except UnknownKeyType:
            self.notes.append(f"{path} holds a key of an unknown type")
        except (paramiko.SSHException, UnsupportedAlgorithm, ValueError) as error:
            self.notes.append(f"{path} is not a private key: {error}")
        except OSError as error:
            self.notes.append(f"{path} cannot be read: {error.strerror}")
        else:
            key.public_blob = None
            return key
        return None

    def _with_certificate(self, key: paramiko.PKey, path: Path) -> Iterator[paramiko.PKey]:
        """Yield a key with each of its certificates, then without."""
        default_file = path.with_name(f"{path.name}-cert.pub")
        for certificate in (self._hop.certificate_file, default_file):
            if certificate is None or not certificate.is_file():
                continue
            try:
                key.load_certificate(str(certificate))
            except (paramiko.SSHException, ValueError, OSError) as error:
                self.notes.append(f"{certificate} does not fit {path}: {error}")
                continue
            self.tried.append(str(certificate))
            yield key
        key.public_blob = None
        self.tried.append(str(path))
        yield key


def authenticate(transport: paramiko.Transport, hop: Hop) -> None:
    """Try the keys in order until the host accepts one."""
    keys = _Keys(hop)
    try:
        for key in keys:
            if _is_accepted(transport, hop, key):
                return
            if not transport.is_active():
                raise _disconnected(hop, keys)
    finally:
        keys.close()
    raise _refused(hop, keys)


def _is_accepted(transport: paramiko.Transport, hop: Hop, key: paramiko.PKey) -> bool:
    try:
        more = transport.auth_publickey(hop.user, key)
    except paramiko.BadAuthenticationType as error:
        raise AuthError(
            f"{hop.name} accepts no keys from {hop.user}, only: {', '.join(error.allowed_types)}",
            hint="volbench supports keys only: allow PubkeyAuthentication there",
        ) from error
    except paramiko.AuthenticationException:
        return False
    except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
        if transport.is_active():  # such as an agent that refuses to sign
            return False
        message = f"the connection to {hop.name} was lost during the login: {error}"
        raise ConnectError(message, hint="retry; see its log (journalctl -u ssh)") from error
    if more:
        message = f"{hop.name} requires more than a key from {hop.user}: {', '.join(more)}"
        hint = "volbench supports keys only: require no second factor (AuthenticationMethods)"
        raise AuthError(message, hint=hint)
    return True


def _disconnected(hop: Hop, keys: _Keys) -> ConnectError | AuthError:
    """Return the error of a closed connection: sshd closes it after MaxAuthTries keys."""
    if len(keys.tried) > 1:
        return AuthError(
            f"{hop.name} closed the connection after {len(keys.tried)} keys of {hop.user}: "
            + ", ".join(keys.tried),
            hint="set `key` in the inventory, so that only that key is tried",
        )
    return ConnectError(
        f"the connection to {hop.name} was lost during the login",
        hint="retry; see its log (journalctl -u ssh)",
    )


def _refused(hop: Hop, keys: _Keys) -> AuthError:
    tried = ", ".join(keys.tried) or "none available"
    notes = "".join(f"; {note}" for note in keys.notes)
    return AuthError(
        f"authentication failed at {hop.name} ({hop.place}); keys tried: {tried}{notes}",
        hint=f"check with: ssh -p {hop.port} {hop.user}@{hop.address}; "
        "give `user` and `key` in the inventory, or add the key to your agent; the account may have"
        " expired there (chage -l)",
    )


def _public_blob(path: Path) -> bytes | None:
    """Return the wire format of the ``.pub`` file of a private key."""
    try:
        return PublicBlob.from_file(f"{path}.pub").key_blob
    except (OSError, ValueError):
        return None
