"""The agent's own program: where its modules come from, and how further processes run them.

On a remote host all modules are in the memory of the process that received them (`SOURCES`), and in
a file of the user's cache, so that the next connection need not send them. On the controller's
machine they are ordinary files.
"""

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time

LOADER = (
    "import hashlib,sys,zlib;p=open(sys.argv[1],'rb').read();"
    "hashlib.sha256(p).hexdigest()==sys.argv[2]or sys.exit('the program was changed');"
    "exec(zlib.decompress(p))"
)
"""Run a module of the program in a file: path, SHA-256, module, arguments."""

_LOCAL_LOADER = (
    "import sys;sys.path.insert(0,sys.argv[1]);import importlib as i;"
    "i.import_module('volbench.execute.agent.'+sys.argv[3]).main(sys.argv[4:])"
)
_CACHE = ".cache/volbench"
_UNUSED_S = 30 * 86400.0  # Longer than any run, whose start gate may still read the file.


class Program:
    """The compressed program, its SHA-256 and its file; empty where modules are ordinary files."""

    data = b""
    digest = ""
    file = ""
    sources: "dict[str, str]" = {}  # noqa: RUF012 - text of each module, by its full name


def command(module: str, *arguments: str) -> "list[str]":
    """Return the command that calls `main` of a module of the agent with a list of arguments."""
    if not Program.data:
        root = os.path.dirname(os.path.abspath(__file__))
        for _ in "volbench", "execute", "agent":
            root = os.path.dirname(root)
        return [sys.executable, "-IS", "-c", _LOCAL_LOADER, root, "", module, *arguments]
    if not os.path.exists(Program.file):  # the cache was removed, or there is none
        install(Program.data, Program.sources)
        Program.file = Program.file or _store_temporarily()
    where = Program.file, Program.digest
    return [sys.executable, "-IS", "-c", LOADER, *where, module, *arguments]


def source(module: str) -> str:
    """Return the source text of a module of the agent, which must import nothing of it."""
    if Program.data:
        return Program.sources["volbench.execute.agent." + module]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), module + ".py")
    with open(path, encoding="utf-8") as file:
        return file.read()


def install(data: bytes, sources: "dict[str, str]") -> None:
    """Take note of the program of this process, and put it into the user's cache."""
    Program.data, Program.sources = data, sources
    Program.digest = hashlib.sha256(data).hexdigest()
    try:
        Program.file = _store(data, Program.digest)
    except OSError:  # no home, or not writable: it is sent again next time
        Program.file = ""


def _store(data: bytes, digest: str) -> str:
    """Write the program to the user's cache, unless it is there, and remove old ones."""
    folder = os.path.expanduser("~")
    for level in _CACHE.split("/"):
        folder = os.path.join(folder, level)
        _make_folder(folder)
    return _store_in(folder, data, digest)


def _make_folder(folder: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)


def _store_in(folder: str, data: bytes, digest: str) -> str:
    """Write the program to a folder that only this user may write to."""
    name = "agent-" + digest
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o22:
            raise PermissionError(folder)
        if not _is_stored(name, len(data), descriptor):
            _write_whole(name, data, descriptor)
        for other in os.listdir(folder):
            if other.startswith("agent-") and other != name:
                _remove_unused(other, descriptor)
    finally:
        os.close(descriptor)
    return os.path.join(folder, name)


def _is_stored(name: str, size: int, folder: int) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if is_own and status.st_size == size:
        os.utime(name, dir_fd=folder, follow_symlinks=False)
        return True
    return False


def _write_whole(name: str, data: bytes, folder: int) -> None:
    temporary = "new-{}-{}".format(os.getpid(), name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(data)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _remove_unused(name: str, folder: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # another agent was first
        if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _UNUSED_S:
            os.unlink(name, dir_fd=folder)


def _store_temporarily() -> str:
    """Write the program to a temporary folder of this user, where a start or a gate reads it."""
    folder = os.path.join(tempfile.gettempdir(), "volbench-agent-{}".format(os.geteuid()))
    with contextlib.suppress(OSError):  # another user was first
        _make_folder(folder)
        return _store_in(folder, Program.data, Program.digest)
    path = os.path.join(tempfile.mkdtemp(prefix="volbench-agent-"), "program")
    with open(path, "wb") as file:
        file.write(Program.data)
    return path
