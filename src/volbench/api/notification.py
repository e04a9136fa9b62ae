"""Notification of a command or a web address: JSON, without a shell, and nothing secret printed."""

from __future__ import annotations

import http.client
import shlex
import subprocess
import urllib.error
import urllib.request
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from volbench import __version__
from volbench.errors import InputError, TransportError

# A chat answers within a second; a command may send mail.
_WEBHOOK_S, _COMMAND_S = 10.0, 60.0


def parse_command(text: str) -> list[str]:
    """Return the words of a command line, split as a shell does; nothing else is done with it."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError("--notify cannot be split into words", hint=str(error)) from error
    if not words:
        raise InputError(
            "--notify names no command", hint="write it like --notify 'mail-it --to me'"
        )
    return words


def run_command(words: list[str], content: bytes) -> None:
    """Run a command with the content on its standard input.

    Raises:
        TransportError: it cannot be started, fails, or takes longer than a minute.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the user named it
            words, input=content, capture_output=True, timeout=_COMMAND_S, check=False
        )
    except subprocess.TimeoutExpired:
        # Not chained: it holds the whole command line, which may have a token.
        raise _unsent(words[0], f"it did not end within {_COMMAND_S:g} s") from None
    except OSError as error:
        raise _unsent(words[0], error.strerror or str(error)) from error
    if done.returncode:
        raise _unsent(words[0], f"exit code {done.returncode}")


def parse_webhook(text: str) -> str:
    """Return an address that content may be sent to: encrypted, or on this machine."""
    try:
        url = urlsplit(text)
        is_there = bool(url.hostname) and url.port != 0
    except ValueError:
        is_there = False
    if not is_there or not text.isascii() or not text.isprintable() or " " in text:
        raise InputError("--webhook is not a valid URL", hint="write it like https://HOST/PATH")
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url)):
        raise InputError(
            f"--webhook to {url.hostname} would be sent unencrypted",
            hint="use https; http is accepted on this machine only",
        )
    return text


def _is_loopback(url: SplitResult) -> bool:
    if url.hostname == "localhost":
        return True
    try:
        return ip_address(url.hostname or "").is_loopback
    except ValueError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirection, which could lead anywhere."""

    def redirect_request(self, *_arguments: object) -> None:
        """Refuse it."""


def post_webhook(url: str, content: bytes) -> None:
    """Post JSON to an address; only its host is named in messages, as the rest may be a secret.

    Raises:
        TransportError: no answer, or another than 2xx.
    """
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url,
        data=content,
        headers={"Content-Type": "application/json", "User-Agent": f"volbench/{__version__}"},
    )
    host = urlsplit(url).hostname or ""
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_WEBHOOK_S):
            pass
    except urllib.error.HTTPError as error:
        raise _unsent(host, f"HTTP status {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise _unsent(host, getattr(reason, "strerror", None) or type(reason).__name__) from error


def _unsent(where: str, reason: str) -> TransportError:
    return TransportError(
        f"the regression was not sent to {where}: {reason}", hint="the next call sends it again"
    )
