"""Folders in one stream: whole, verified, and never outside of their place."""

from __future__ import annotations

import base64
import gzip
import hashlib
from pathlib import Path

import pytest

from volbench.errors import TransferError
from volbench.execute.shell.incoming_folder import IncomingFolder


def entry(name: str, content: bytes, *, digest: str = "") -> bytes:
    """Return a file as a host sends it."""
    encoded = base64.b64encode(name.encode()).decode()
    digest = digest or hashlib.sha256(content).hexdigest()
    return f"{encoded} {len(content)} {digest}\n".encode() + content


def receive(into: Path, stream: bytes, *, size: int = 7) -> None:
    """Receive a stream in pieces."""
    with IncomingFolder("h", "/there", into) as incoming:
        for at in range(0, len(stream), size):
            incoming(stream[at : at + size])
        incoming.check_whole()


@pytest.mark.parametrize("encoding", [b"plain", b"gzip"])
def test_files_arrive_with_any_name(tmp_path: Path, encoding: bytes) -> None:
    """Line ends, quotes and blanks in names are no harm; empty files are files."""
    files = {"a": b"1", "empty": b"", "sub/it's $HOME\n`x`": b"\0\n" * 500}
    body = b"".join(entry(f"./{name}", content) for name, content in files.items()) + b"end\n"
    stream = encoding + b"\n" + (gzip.compress(body) if encoding == b"gzip" else body)
    receive(tmp_path, stream)
    assert {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    } == files


@pytest.mark.parametrize(
    "name", ["../x", "./../x", "/etc/x", "./a/../../x", ".", "./", "./a//b", "x", "./a\0b"]
)
def test_names_outside_are_refused(tmp_path: Path, name: str) -> None:
    """A host cannot choose where on the controller a file goes."""
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(TransferError, match="outside"):
        receive(into, b"plain\n" + entry(name, b"1") + b"end\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["into"]


@pytest.mark.parametrize(
    "stream",
    [
        b"plain\n" + entry("./a", b"12"),
        b"plain\n" + entry("./a", b"12", digest="0" * 64) + b"end\n",
        b"plain\n" + entry("./a", b"12")[:-1],
        b"zip\nend\n",
        b"gzip\nend\n",
        b"plain\n" + b"x" * 10_000,
        b"plain\nYQ== -1 " + b"0" * 64 + b"\n",
        b"",
    ],
)
def test_damage_is_noticed(tmp_path: Path, stream: bytes) -> None:
    """A stream that is cut, changed or no stream at all leaves no file in part."""
    with pytest.raises(TransferError):
        receive(tmp_path, stream)
    assert [path.name for path in tmp_path.iterdir() if path.name != "a"] == []
