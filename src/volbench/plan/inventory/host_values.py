"""Validation of host values: addresses, users, targets, labels, devices."""

from __future__ import annotations

import re
from ipaddress import ip_address

from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL

BY_ID = "/dev/disk/by-id/"
NBD_SCHEMES = ("nbd://", "nbds://", "nbd+unix://", "nbds+unix://")

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@\\+-]{0,63}\$?")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_WORKDIR = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_HOP = re.compile(
    r"(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+|[^\[\]]*:[^\[\]]*:[^\[\]]*)(?::(?P<port>[0-9]+))?"
)


def address(text: str) -> str:
    """Return a name or an IP address to connect to; "" for the controller's own machine."""
    if text == LOCAL:
        return ""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "@" in text:
        raise InputError(f"{text!r} names a user too", hint="write user: separately")
    if ":" in bare or re.fullmatch(r"[0-9.]+", bare):
        return _ip(bare)
    if not _HOST_NAME.fullmatch(bare) or bare != text:
        raise InputError(f"{text!r} is not a name or IP address", hint="write it like 10.0.0.4")
    return text


def _ip(text: str) -> str:
    try:
        ip_address(text)
    except ValueError:
        host, colon, port = text.partition(":")
        if colon and port.isdecimal():
            raise InputError(
                f"{text!r} names a port too", hint=f"write address: {host} and port: {port}"
            ) from None
        raise InputError(f"{text!r} is not an IP address", hint="write it like 10.0.0.4") from None
    return text


def port(text: str) -> int:
    """Return a TCP port."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise InputError(f"{text!r} is not a port", hint="ports go from 1 to 65535; sshd's is 22")
    return int(text)


def user(text: str) -> str:
    """Return a user's name."""
    if not _USER.fullmatch(text):
        raise InputError(f"{text!r} is not a user name", hint="write it like root")
    return text


def key(text: str) -> str:
    """Return the path of a private key, never the key itself."""
    if "PRIVATE KEY" in text:
        raise InputError(
            "this is a key, not the path of a key file",
            hint="store it in a file that only you can read, and write its path",
        )
    return _printable(text)


def hop(text: str) -> tuple[str | None, str, int | None]:
    """Return user, host and port of one hop such as ``user@host:port``."""
    match = _HOP.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a hop", hint="write a host's name, or user@host:port")
    host = match["host"].strip("[]")
    if not address(host):
        raise InputError("the controller's own machine is not a hop", hint="leave jump out")
    return (
        None if match["user"] is None else user(match["user"]),
        host,
        None if match["port"] is None else port(match["port"]),
    )


def plain_hop(text: str) -> str:
    """Return a hop in the form of `hop_text`."""
    return hop_text(*hop(text))


def hop_text(user_name: str | None, host: str, port_number: int | None) -> str:
    """Return a hop as text; an IPv6 address followed by a port is in brackets."""
    before = "" if user_name is None else f"{user_name}@"
    if port_number is None:
        return before + host
    return f"{before}[{host}]:{port_number}" if ":" in host else f"{before}{host}:{port_number}"


def role(text: str) -> str:
    """Return the name of a role of a profile."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text) or text.startswith("global"):
        raise InputError(
            f"{text!r} is not a valid name of a role", hint="use letters, digits, - and _"
        )
    return text


def target(text: str) -> str:
    """Return a device, a file, a directory or an NBD URI."""
    if text.startswith(NBD_SCHEMES):
        return _printable(text)
    if not text.startswith("/"):
        raise InputError(
            f"{text!r} is not an absolute path",
            hint="write it like /dev/vdb, /data or nbd://host/name",
        )
    return _printable(text)


def label_name(text: str) -> str:
    """Return the name of a label, which is used in a column name."""
    if not _LABEL.fullmatch(text):
        raise InputError(
            f"{text!r} is not a valid name of a label",
            hint="use letters, digits, _ and -, beginning with a letter",
        )
    return text


def label(text: str) -> str:
    """Return the value of a label: one short line."""
    if len(text) > 200:
        raise InputError("a label has at most 200 characters", hint="shorten it")
    return _printable(text)


def leave(text: str) -> str:
    """Return a device that may be overwritten, by a persistent name."""
    if text.startswith("serial:"):
        if not text.removeprefix("serial:").strip():
            raise InputError(f"{text!r} has no serial number", hint="lsblk -o NAME,SERIAL shows it")
        return _printable(text)
    name = text.removeprefix(BY_ID)
    if name == text:
        moving = text.startswith("/dev/")
        reason = "may name another disk after the next boot"
        raise InputError(
            f"{text!r} {reason}" if moving else f"{text!r} is not a permanent name of a disk",
            hint=f"write serial:TEXT or {BY_ID}NAME; ls -l {BY_ID} shows them",
        )
    if "/" in name or name in {"", ".", ".."}:
        raise InputError(f"{text!r} is not a name in {BY_ID}", hint=f"ls {BY_ID} shows them")
    return _printable(text)


def workdir(text: str) -> str:
    """Return a folder on the host whose path needs no quoting."""
    if not _WORKDIR.fullmatch(text) or any(part in {".", ".."} for part in text.split("/")):
        raise InputError(
            f"{text!r} is not a valid workdir",
            hint="write an absolute path of letters, digits and . _ @ + -, such as /srv/volbench",
        )
    return text


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise InputError("must not begin or end with a blank, or contain control characters")
    return text
