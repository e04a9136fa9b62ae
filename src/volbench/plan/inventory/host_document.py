"""Models of inventory hosts and of volbench's own inventory format."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL, Host
from volbench.model.document.document_model import (
    Boolean,
    Document,
    Filled,
    Integer,
    Nullable,
    Text,
    document_schema,
)
from volbench.model.document.located_errors import (
    Entry,
    Node,
    fault_error,
    input_fault,
    reject,
    validate,
)
from volbench.plan.inventory.host_drafts import Draft, HostReader
from volbench.plan.profile.limits_document import LimitsDocument, RoleLimits

BY_ID = "/dev/disk/by-id/"
NBD_SCHEMES = ("nbd://", "nbds://", "nbd+unix://", "nbds+unix://")

_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@\\+-]{0,63}\$?")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_WORKDIR = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_HOP = re.compile(
    r"(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+|[^\[\]]*:[^\[\]]*:[^\[\]]*)(?::(?P<port>[0-9]+))?"
)


def check_address(text: str) -> str:
    """Return a name or an IP address to connect to; "" for the controller's own machine."""
    if text == LOCAL:
        return ""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "@" in text:
        raise InputError(f"{text!r} also names a user", hint="write user: separately")
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
                f"{text!r} also names a port", hint=f"write address: {host} and port: {port}"
            ) from None
        raise InputError(f"{text!r} is not an IP address", hint="write it like 10.0.0.4") from None
    return text


def check_port(text: str) -> int:
    """Return a TCP port."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise InputError(f"{text!r} is not a port", hint="ports go from 1 to 65535; sshd's is 22")
    return int(text)


def check_user(text: str) -> str:
    """Return a user's name."""
    if not _USER.fullmatch(text):
        raise InputError(f"{text!r} is not a user name", hint="write it like root")
    return text


def check_key(text: str) -> str:
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
    if not check_address(host):
        raise InputError("the controller's own machine is not a hop", hint="leave jump out")
    return (
        None if match["user"] is None else check_user(match["user"]),
        host,
        None if match["port"] is None else check_port(match["port"]),
    )


def plain_hop(text: str) -> str:
    """Return a hop in the form of `hop_text`."""
    return hop_text(*parse_hop(text))


def hop_text(user_name: str | None, host: str, port_number: int | None) -> str:
    """Return a hop as text; an IPv6 address followed by a port is in brackets."""
    before = "" if user_name is None else f"{user_name}@"
    if port_number is None:
        return before + host
    return f"{before}[{host}]:{port_number}" if ":" in host else f"{before}{host}:{port_number}"


def check_role(text: str) -> str:
    """Return the name of a role of a profile."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", text) or text.startswith("global"):
        raise InputError(
            f"{text!r} is not a valid name of a role", hint="use letters, digits, - and _"
        )
    return text


def check_target(text: str) -> str:
    """Return a device, a file, a directory or an NBD URI."""
    if text.startswith(NBD_SCHEMES):
        return _printable(text)
    if not text.startswith("/"):
        raise InputError(
            f"{text!r} is not an absolute path",
            hint="write it like /dev/vdb, /data or nbd://host/name",
        )
    return _printable(text)


def check_label_name(text: str) -> str:
    """Return the name of a label, which is used in a column name."""
    if not _LABEL.fullmatch(text):
        raise InputError(
            f"{text!r} is not a valid name of a label",
            hint="use letters, digits, _ and -, beginning with a letter",
        )
    return text


def check_label(text: str) -> str:
    """Return the value of a label: one short line."""
    if len(text) > 200:
        raise InputError("a label has at most 200 characters", hint="shorten it")
    return _printable(text)


def check_disk(text: str) -> str:
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


def check_workdir(text: str) -> str:
    """Return a folder on the host whose path needs no quoting."""
    if not _WORKDIR.fullmatch(text) or any(part in {".", ".."} for part in text.split("/")):
        raise InputError(
            f"{text!r} is not a valid workdir",
            hint="write an absolute path of letters, digits and . _ @ + -, such as /srv/volbench",
        )
    return text


def check_python(text: str) -> str:
    """Return a Python interpreter on the host, whose path needs no quoting."""
    if not (_WORKDIR.fullmatch(text) or _PROGRAM.fullmatch(text)):
        raise InputError(
            f"{text!r} is not a Python interpreter",
            hint="write its name or absolute path, such as /opt/python/bin/python3",
        )
    return text


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise InputError("must not begin or end with a blank, or contain control characters")
    return text


# Keys whose entries are merged with the inherited ones; all other keys replace them
MERGED = ("volumes", "labels")

_OF_CONNECTIONS = ("port", "user", "key", "jump")


def _checked(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator that converts a text with a function."""

    def replaced(text: str) -> Any:  # noqa: ANN401 - whatever the function returns
        try:
            return check(text)
        except InputError as error:
            raise fault_error(input_fault(error)) from error

    return AfterValidator(replaced)


def _one_or_more(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _hops(value: object) -> object:
    """Return the hops of a comma-separated text; ``none`` means no hops."""
    if not isinstance(value, str):
        return value
    return [] if value.lower() in {"", "none"} else [part.strip() for part in value.split(",")]


def _pattern(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


Name = Annotated[str, _pattern(r"^[A-Za-z0-9_][A-Za-z0-9._,\[\]-]*$")]
GroupName = Annotated[str, _pattern(r"^(?!all$)[A-Za-z0-9_][A-Za-z0-9._-]*$")]
Role = Annotated[Text, _checked(check_role), _pattern("^(?!global)[A-Za-z0-9_-]{1,100}$")]
LabelName = Annotated[Text, _checked(check_label_name), _pattern("^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Label = Annotated[
    Filled, _checked(check_label), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
Target = Annotated[
    Filled,
    _checked(check_target),
    WithJsonSchema({"type": ["string", "null"], "pattern": r"^(/|nbds?(\+unix)?://)"}),
]
Disk = Annotated[Filled, _checked(check_disk), _pattern(r"^(serial:.*\S.*|/dev/disk/by-id/[^/]+)$")]
Hop = Annotated[Filled, _checked(plain_hop)]
_TEXT_OR_LIST: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


def _check_roles(limits: dict[str, LimitsDocument]) -> dict[str, LimitsDocument]:
    for name in limits:
        try:
            check_role("data" if name == "*" else name)
        except InputError as error:
            reject(input_fault(error, at=(name,), on_key=True))
    return limits


class _Addressed(Document):
    address: Annotated[Filled, _checked(check_address)] = Field(
        default="",
        description="Name or IP address, without it the host's name; `local` for the machine that "
        "volbench runs on.",
    )


class HostDefaults(Document):
    """Default values of all hosts; null removes a value."""

    port: Nullable[Annotated[Integer, Field(ge=1, le=65535)]] = Field(
        default=None, description="Port of sshd; without it that of `~/.ssh/config`, or 22."
    )
    user: Nullable[Annotated[Filled, _checked(check_user)]] = Field(
        default=None, description="Login name; without it that of `~/.ssh/config`, or your own."
    )
    key: Nullable[Annotated[Filled, _checked(check_key)]] = Field(
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
        BeforeValidator(_one_or_more, json_schema_input_type=Disk | tuple[Disk, ...]),
    ] = Field(
        default=(),
        description="Device or devices that may be overwritten: `serial:TEXT` or "
        "`/dev/disk/by-id/NAME`.",
    )
    workdir: Annotated[Filled, _checked(check_workdir), _pattern("^/")] = Field(
        default="",
        description="Folder on the host for volbench's files during a run; without it "
        "`.volbench` in the user's home.",
    )
    python: Annotated[Filled, _checked(check_python), _pattern("^[A-Za-z0-9_/]")] = Field(
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


def read_host(reader: HostReader, draft: Draft) -> Host:
    """Return a host, and record problems."""
    fields = _fields(reader, draft)
    place = draft.place
    entries = [Entry(name, node.line, node.column, node) for name, node in fields.items()]
    node = Node(place.line, place.column, place.key, entries=tuple(entries))
    entry = validate(HostEntry, node, reader.problems)
    if entry is None:  # its problems are recorded, and the inventory is invalid
        return Host(name=draft.name, address=draft.name)
    written = entry.address if "address" in fields else draft.name
    address = "" if written == LOCAL else written
    if draft.name == LOCAL and address:
        reader.complain(
            fields["address"],
            "local is the controller's own machine",
            hint="give a machine with an address another name",
        )
    values = {name: getattr(entry, name) for name in entry.model_fields_set}
    values["limits"] = {role: limits.limits() for role, limits in entry.limits.items()}
    if not address:
        _check_local(reader, draft)
        values = {name: value for name, value in values.items() if name not in _OF_CONNECTIONS}
    return Host.model_validate(values | {"name": draft.name, "address": address})


def _fields(reader: HostReader, draft: Draft) -> dict[str, Node]:
    """Return the effective values of a host; null removes an inherited one."""
    found = dict(draft.inherited)
    for name, node in draft.own.items():
        if node.is_null:
            if found.pop(name, None) is None:
                reader.complain(node, "has no value", hint="write one, or remove the key")
        elif name in MERGED and name in found:
            found[name] = _merged(found[name], node)
        else:
            found[name] = node
    return found


def _merged(inherited: Node, own: Node) -> Node:
    """Return the merged entries of two mappings; null removes an inherited entry."""
    if inherited.entries is None or own.entries is None:
        return own
    found = {entry.name: entry for entry in inherited.entries}
    for entry in own.entries:
        if entry.value.is_null and entry.name in found:
            del found[entry.name]
        else:
            found[entry.name] = entry
    return Node(own.line, own.column, own.key, entries=tuple(found.values()))


def _check_local(reader: HostReader, draft: Draft) -> None:
    for name in _OF_CONNECTIONS:
        if name in draft.own and not draft.own[name].is_null:
            reader.complain(
                draft.own[name],
                "has no effect for the controller's own machine, which needs no connection",
                hint="leave it out",
            )


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


def read_defaults(reader: HostReader, node: Node) -> dict[str, Node]:
    """Return the default values of all hosts."""
    defaults = {}
    for entry in reader.known(node, tuple(HostDefaults.model_fields), "defaults"):
        if entry.value.is_null:
            hint = "write one, or leave it out"
            reader.complain(entry, f"{entry.name} has no value", hint=hint)
        else:
            defaults[entry.name] = entry.value
    return defaults
