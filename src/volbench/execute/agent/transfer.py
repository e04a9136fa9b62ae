"""Transfer of a folder to the controller: compressed chunks with checksums, resumable."""

import base64
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator

from volbench.execute.agent.agent_error import AgentError, of_os_error

CHUNK_BYTES = 65_536  # Over 64 kbit/s a compressed chunk of a log delays other replies by 1 to 2 s.
_LEVEL = 1  # The host may be measuring something else.


def fetch_folder(path: str, have: "dict[str, int]") -> "Iterator[dict[str, object]]":
    """Yield all regular files below a folder: a header, chunks, and the SHA-256 of each.

    Args:
        path: the folder; symlinks in it are not followed.
        have: bytes of each file that arrived before a connection broke, by its name.
    """
    if not os.path.isdir(path):
        raise AgentError("missing", "No such file or directory")
    try:
        for name in _names(path):
            yield from _file(path, name, have.get(name, 0))
    except OSError as error:
        failure = of_os_error(error)
        name = os.path.relpath(os.fsdecode(error.filename), path) if error.filename else ""
        raise AgentError(failure.kind, "{}: {}".format(name, failure.message)) from error


def _names(path: str) -> "list[str]":
    """Return the names of the files below a folder, relative to it, without control folders."""

    def refuse(error: OSError) -> None:
        raise error

    names = []
    for folder, folders, files in os.walk(path, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [os.path.relpath(os.path.join(folder, name), path) for name in files]
    return sorted(n for n in names if stat.S_ISREG(os.lstat(os.path.join(path, n)).st_mode))


def _file(path: str, name: str, offset: int) -> "Iterator[dict[str, object]]":
    descriptor = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        offset = offset if offset <= size else 0
        digest = hashlib.sha256()
        yield {"file": name, "size": size, "offset": offset}
        position = 0
        while position < size:
            limit = offset if position < offset else size  # what arrived before is only hashed
            chunk = file.read(min(CHUNK_BYTES, limit - position))
            if not chunk:
                raise AgentError("damaged", "{} became shorter".format(name))
            digest.update(chunk)
            if position >= offset:
                yield {"data": base64.b64encode(zlib.compress(chunk, _LEVEL)).decode()}
            position += len(chunk)
        yield {"sha256": digest.hexdigest()}
