"""ProxyCommand of the ssh configuration: a program whose input and output are the connection.

ssh starts it with the user's shell. volbench does not: the words are split as a shell would split
them, then placeholders are replaced, so that no value is ever parsed by a shell.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from collections.abc import Mapping
from threading import Thread

from volbench.errors import InputError, TransportError

_NEEDS_SHELL = re.compile(r"[|&;<>()$`]")
_PLACEHOLDER = re.compile(r"%(.)")


def proxy_argv(command: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the program and arguments of a ProxyCommand.

    Args:
        values: placeholder letter to its value: h for the host, p for the port, r for the user.
    """
    if _NEEDS_SHELL.search(command):
        raise _unusable(command, "it needs a shell", "put it into a script, and name the script")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _unusable(command, str(error), "check its quotes") from error
    words = words[1:] if words[:1] == ["exec"] else words
    if not words:
        raise _unusable(command, "it names no program", "write it as for ssh")

    def value(found: re.Match[str]) -> str:
        known = {"%": "%", **values}
        if found[1] not in known:
            raise _unusable(command, f"{found[0]} is not supported", "use %h, %p, %r and %%")
        return known[found[1]]

    return tuple(_PLACEHOLDER.sub(value, word) for word in words)


def open_proxy(argv: tuple[str, ...], *, host: str) -> socket.socket:
    """Start a ProxyCommand and return the socket to it; it ends when the socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, as for ssh
                argv,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise TransportError(
                f"the ProxyCommand of {host} cannot be started: {error.strerror}",
                hint=f"check it in ~/.ssh/config: {argv[0]}",
            ) from error
    Thread(target=process.wait, daemon=True).start()
    return ours


def _unusable(command: str, reason: str, hint: str) -> InputError:
    return InputError(f"ProxyCommand {command!r} cannot be used: {reason}", hint=hint)
