"""Models of inventory hosts and of volbench's own inventory format."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL
from volbench.model.document.document_model import (
    Boolean,
    Document,
    Filled,
    Integer,
    Nullable,
    Text,
    document_schema,
)
from volbench.model.document.located_errors import fault_error, input_fault, reject
from volbench.plan.profile.limits_document import LimitsDocument, RoleLimits

BY_ID = "/dev/disk/by-id/"
NBD_SCHEMES = ("nbd://", "nbds://", "nbd+unix://", "nbds+unix://")

_HOP = re.compile(
    r"(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+|[^\[\]]*:[^\[\]]*:[^\[\]]*)(?::(?P<port>[0-9]+))?"
)

_TEXT_OR_LIST: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


def _matching(pattern: str, what: str, hint: str) -> Callable[[str], str]:
    """Return a check of texts by a pattern, which returns a text that matches."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise InputError(f"{text!r} is not {what}", hint=hint)
        return text

    return check


check_user = _matching(
    r"[A-Za-z0-9_][A-Za-z0-9._@\\+-]{0,63}\$?", "a user name", "write it like root"
)
_check_role = _matching(
    "(?!global)[A-Za-z0-9_-]{1,100}", "a valid name of a role", "use letters, digits, - and _"
)
_check_label_name = _matching(  # used in a column name
    "[A-Za-z_][A-Za-z0-9_-]{0,63}",
    "a valid name of a label",
    "use letters, digits, _ and -, beginning with a letter",
)
_check_workdir = _matching(  # needs no quoting, like the next one
    r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._@+-]+)+",
    "a valid workdir",
    "write an absolute path of letters, digits and . _ @ + -, such as /srv/volbench",
)
_check_python = _matching(
    r"(/[A-Za-z0-9._@+-]+)+|[A-Za-z0-9_][A-Za-z0-9._+-]*",
    "a Python interpreter",
    "write its name or absolute path, such as /opt/python/bin/python3",
)


def _check_address(text: str) -> str:
    """Return a name or an IP address to connect to; "" for the controller's own machine."""
    if text == LOCAL:
        return ""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "@" in text:
        raise InputError(f"{text!r} also names a user", hint="write user: separately")
    if ":" in bare or re.fullmatch(r"[0-9.]+", bare):
        try:
            ip_address(bare)
        except ValueError:
            host, _, port = bare.partition(":")
            if port.isdecimal():
                hint = f"write address: {host} and port: {port}"
                raise InputError(f"{bare!r} also names a port", hint=hint) from None
            hint = "write it like 10.0.0.4"
            raise InputError(f"{bare!r} is not an IP address", hint=hint) from None
        return bare
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}", bare) or bare != text:
        raise InputError(f"{text!r} is not a name or IP address", hint="write it like 10.0.0.4")
    return text


def check_port(text: str) -> int:
    """Return a TCP port."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise InputError(f"{text!r} is not a port", hint="ports go from 1 to 65535; sshd's is 22")
    return int(text)


def _check_key(text: str) -> str:
    """Return the path of a private key, never the key itself."""
    if "PRIVATE KEY" in text:
        raise InputError(
            "this is a key, not the path of a key file",
            hint="store it in a file that only you can read, and write its path",
        )
    return _printable(text)


def parse_hop(text: str) -> tuple[str | None, str, int | None]:
    """Return user, host and port of one hop such as ``user@host:port``."""
    match = _HOP.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a hop", hint="write a host's name, or user@host:port")
    host = match["host"].strip("[]")
    if not _check_address(host):
        raise InputError("the controller's own machine is not a hop", hint="leave jump out")
    return (
        None if match["user"] is None else check_user(match["user"]),
        host,
        None if match["port"] is None else check_port(match["port"]),
    )


def hop_text(user_name: str | None, host: str, port_number: int | None) -> str:
    """Return a hop as text; an IPv6 address followed by a port is in brackets."""
    before = "" if user_name is None else f"{user_name}@"
    if port_number is None:
        return before + host
    return f"{before}[{host}]:{port_number}" if ":" in host else f"{before}{host}:{port_number}"


def check_target(text: str) -> str:
    """Return the target of a volume on a host."""
    if not text.startswith((*NBD_SCHEMES, "/")):
        raise InputError(
            f"{text!r} is not an absolute path",
            hint="write it like /dev/vdb, /data or nbd://host/name",
        )
    return _printable(text)


def _check_label(text: str) -> str:
    if len(text) > 200:
        raise InputError("a label has at most 200 characters", hint="shorten it")
    return _printable(text)


def _check_disk(text: str) -> str:
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


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise InputError("must not begin or end with a blank, or contain control characters")
    return text


def _valid(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator that converts a text with a function."""

    def replaced(text: str) -> Any:  # noqa: ANN401 - whatever the function returns
        try:
            return check(text)
        except InputError as error:
            raise fault_error(input_fault(error)) from error

    return AfterValidator(replaced)


def _hops(value: object) -> object:
    """Return the hops of a comma-separated text; ``none`` means no hops."""
    if not isinstance(value, str):
        return value
    return [] if value.lower() in {"", "none"} else [part.strip() for part in value.split(",")]


def _schema(pattern: str, *kinds: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", *kinds] if kinds else "string", "pattern": pattern})


Name = Annotated[str, _schema(r"^[A-Za-z0-9_][A-Za-z0-9._,\[\]-]*$")]
GroupName = Annotated[str, _schema(r"^(?!all$)[A-Za-z0-9_][A-Za-z0-9._-]*$")]
Role = Annotated[Text, _valid(_check_role), _schema("^(?!global)[A-Za-z0-9_-]{1,100}$")]
LabelName = Annotated[Text, _valid(_check_label_name), _schema("^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Label = Annotated[
    Filled, _valid(_check_label), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
Target = Annotated[Filled, _valid(check_target), _schema(r"^(/|nbds?(\+unix)?://)", "null")]
Disk = Annotated[Filled, _valid(_check_disk), _schema(r"^(serial:.*\S.*|/dev/disk/by-id/[^/]+)$")]
Hop = Annotated[Filled, _valid(lambda text: hop_text(*parse_hop(text)))]


def _check_roles(limits: dict[str, LimitsDocument]) -> dict[str, LimitsDocument]:
    for name in limits:
        try:
            _check_role("data" if name == "*" else name)
        except InputError as error:
            reject(input_fault(error, at=(name,), on_key=True))
    return limits


class _Addressed(Document):
    address: Annotated[Filled, _valid(_check_address)] = Field(
        default="",
        description="Name or IP address, without it the host's name; `local` for the machine that "
        "volbench runs on.",
    )


class HostDefaults(Document):
    """Default values of all hosts; null removes a value."""

    port: Nullable[Annotated[Integer, Field(ge=1, le=65535)]] = Field(
        default=None, description="Port of sshd; without it that of `~/.ssh/config`, or 22."
    )
    user: Nullable[Annotated[Filled, _valid(check_user)]] = Field(
        default=None, description="Login name; without it that of `~/.ssh/config`, or your own."
    )
    key: Nullable[Annotated[Filled, _valid(_check_key)]] = Field(
        default=None,
        description="Path of a private key, never the key itself; without it those of "
        "`~/.ssh/config` and the agent, and the default key files.",
    )
    jump: Annotated[
        tuple[Hop, ...] | None, BeforeValidator(_hops), WithJsonSchema(_TEXT_OR_LIST)
    ] = Field(
        default=None,
        description="Jump hosts in order: `gate`, `[user@gate:2222, inner]`; `none` for a direct "
        "connection; without it those of `~/.ssh/config`.",
    )
    sudo: Boolean = Field(default=False, description="Whether fio is started through `sudo -n`.")
    volumes: dict[Role, Target] = Field(
        default_factory=dict,
        description="Role to device, file, directory or NBD URI, as in `--on`; paths are absolute.",
        examples=["{data: /mnt/data}"],
    )
    labels: dict[LabelName, Label] = Field(
        default_factory=dict,
        description="Labels for tables and charts; each is a column `label_NAME` of the "
        "[summary](frames.md).",
    )
    limits: Annotated[RoleLimits, AfterValidator(_check_roles)] = Field(
        default_factory=dict,
        description="Declared limits as in a [profile](profile.md#limits), such as "
        "`azure/P15`: for all roles, or by role.",
    )
    allow_destroy: Annotated[
        tuple[Disk, ...],
        BeforeValidator(
            lambda value: value if isinstance(value, list | tuple) else [value],
            json_schema_input_type=Disk | tuple[Disk, ...],
        ),
    ] = Field(
        default=(),
        description="Device or devices that may be overwritten: `serial:TEXT` or "
        "`/dev/disk/by-id/NAME`.",
    )
    workdir: Annotated[Filled, _valid(_check_workdir), _schema("^/")] = Field(
        default="",
        description="Folder on the host for volbench's files during a run; without it "
        "`.volbench` in the user's home.",
    )
    python: Annotated[Filled, _valid(_check_python), _schema("^[A-Za-z0-9_/]")] = Field(
        default="",
        description="Python 3.6 or newer on the host; without it `python3`, or the system's own "
        "of RHEL.",
    )


class HostEntry(HostDefaults, _Addressed):
    """A host; null removes a default."""


class InventoryFile(Document):
    """An inventory in volbench's own YAML."""

    defaults: HostDefaults = Field(
        default=HostDefaults(),
        description="Defaults for all hosts: every key of a host except `address`.",
    )
    hosts: (
        Annotated[list[Name], Field(min_length=1)]
        | Annotated[dict[Name, Nullable[HostEntry]], Field(min_length=1)]
    ) = Field(description="Name to the keys of the host, or a list of names.")
    groups: dict[GroupName, Name | list[Name]] = Field(
        default_factory=dict,
        description="Name to a list of hosts, ranges and other groups; `all` is every host "
        "and cannot be redefined.",
    )


HOST_KEYS = tuple(HostEntry.model_fields)  # Keys of a host, in the order of the documentation
OWN_KEYS = tuple(InventoryFile.model_fields)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an inventory in volbench's own YAML."""
    schema: dict[str, Any] = _closed(document_schema(InventoryFile, title="volbench inventory"))
    keys = schema["$defs"]["HostEntry"]["properties"]
    for name, key in keys.items():  # null removes a default
        keys[name] = {"anyOf": [key, {"type": "null"}]}
    return schema


def _closed(schema: Any) -> Any:  # noqa: ANN401 - any part of a JSON Schema
    """Return a schema in which mappings with key patterns accept no other keys."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "patternProperties" in closed else closed
