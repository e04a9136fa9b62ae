"""Server of a scenario: nbdkit on a Unix socket, optionally as a block device.

All processes end with the block, and also when this process is killed: nbdkit and nbdfuse exit
with their parent, and the loop device is detached at its last close.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from volbench.errors import InputError, VolbenchError
from volbench.execute.local import check_place
from volbench.extensions.lab.scenario import Scenario
from volbench.store.atomic_files import check_output
from volbench.store.held_folder import refuse_foreign, refuse_foreign_links

THREADS = 64  # Requests that nbdkit serves in parallel; a deeper queue waits in the socket

_READY_S = 20.0
_END_S = 10.0
_UNMOUNTED_S = 2.0  # Longest wait for nbdfuse to exit by itself once it is unmounted
# unix(7): 108 bytes with the final zero, less a margin. Noticed by:
# tests/extensions/lab/test_server.py::test_a_socket_that_fio_would_misread_is_refused
_MAX_SOCKET_PATH = 100
# Files in the folder of a lab; the last two come first, and stay
_NAMES = {"volume.sock", "volume.img", "nbdkit.pid", "nbdfuse.log", "nbdkit.log", "parameters.json"}
_PLUGIN = Path(__file__).with_name("plugin.py")


@dataclass(frozen=True)
class LabVolume:
    """A running simulated volume."""

    scenario: Scenario  # scenario of the volume
    uri: str  # NBD URI for fio's engine nbd and for ``volbench run --on``
    pid: int  # process ID of nbdkit
    folder: Path  # folder of socket, parameters and logs
    _server: subprocess.Popen[bytes] = field(repr=False, compare=False)
    device: str = ""  # block device such as ``/dev/loop0``; empty without one

    def ended(self, *, within_s: float) -> bool:
        """Wait for the server to exit; return whether it did in time."""
        try:
            self._server.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        """Return the last output of nbdkit."""
        return _tail(self.folder / "nbdkit.log")


def check_tools(*, device: bool = False) -> None:
    """Check that all required programs are installed."""
    needed = {"nbdkit": "nbdkit and nbdkit-plugin-python"}
    if device:
        needed |= {"nbdfuse": "libnbd-bin and fuse3", "losetup": "mount", "setpriv": "util-linux"}
    for program, packages in needed.items():
        if shutil.which(program, path=_path()) is None:
            hint = f"install the packages {packages}, or run scripts/setup dev"
            raise InputError(f"{program} is not installed; the lab needs it", hint=hint)
    if device and os.geteuid() != 0:
        raise InputError(
            "only root can create a block device",
            hint="omit --device and measure the NBD URI, which needs no root",
        )


@contextmanager
def serve(scenario: Scenario, folder: Path, *, device: bool = False) -> Iterator[LabVolume]:
    """Serve a volume for the duration of the block.

    Clock and warm blocks are reset each time. nbdkit exits with the calling thread.
    """
    check_tools(device=device)
    folder = folder.absolute()
    socket, image = folder / "volume.sock", folder / "volume.img"
    _check_socket(socket)
    check_place(folder, f"in {folder}", hint="choose another folder with --output")
    try:
        refuse_foreign_links(folder / socket.name)
        folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(folder, folder.stat())
        taken = {path.name for path in folder.iterdir()} & _NAMES
        is_labs = taken >= {"nbdkit.log", "parameters.json"}
        check_output(folder / "parameters.json", scenario.parameters().to_json().encode(), ".json")
        if taken and not (is_labs and ("volume.img" not in taken or not image.stat().st_size)):
            raise InputError(
                f"{folder} holds {min(taken)}, which the lab would replace",
                hint="choose another folder with --output",
            )
    except OSError as error:
        raise InputError(
            f"{folder} cannot be created: {error.strerror}",
            hint="choose another folder with --output",
        ) from error
    with ExitStack() as stack:
        server = stack.enter_context(_nbdkit(scenario, folder, socket))
        uri = f"nbd+unix:///?socket={socket}"
        volume = LabVolume(scenario, uri, server.pid, folder, server)
        if device:
            volume = replace(volume, device=stack.enter_context(_attached(uri, folder)))
        yield volume


def _check_socket(socket: Path) -> None:
    """Refuse a path that the kernel, fio or a URI would truncate or misinterpret."""
    text = str(socket)
    invalid = sorted({c for c in text if not (c.isascii() and (c.isalnum() or c in "/._-+,=@"))})
    if len(text) > _MAX_SOCKET_PATH or invalid:
        length = f"has {len(text)} characters"
        reason = f"contains {' '.join(map(repr, invalid))}" if invalid else length
        raise InputError(
            f"a socket cannot be created at {text}: its path {reason}",
            hint="choose a short path without blanks: --output /tmp/lab",
        )


@contextmanager
def _nbdkit(scenario: Scenario, folder: Path, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    parameters = folder / "parameters.json"
    parameters.write_text(scenario.parameters().to_json(), encoding="utf-8")
    ready = folder / "nbdkit.pid"
    for old in (socket, ready):
        old.unlink(missing_ok=True)
    command = ["nbdkit", "--exit-with-parent", "--threads", str(THREADS)]
    command += ["--unix", str(socket), "--pidfile", str(ready)]
    command += ["python", str(_PLUGIN), f"scenario={parameters}"]
    with _running(command, folder / "nbdkit.log") as server:
        _wait_for(ready.exists, server, folder / "nbdkit.log")
        yield server
    for old in (socket, ready):
        old.unlink(missing_ok=True)


@contextmanager
def _attached(uri: str, folder: Path) -> Iterator[str]:
    """Provide an export as a file through FUSE, and the file as a loop device."""
    image, log = folder / "volume.img", folder / "nbdfuse.log"
    image.touch()
    command = ["setpriv", "--pdeathsig", "TERM", "nbdfuse", "-C", "8", str(image), uri]
    with _running(command, log) as server:
        try:
            _wait_for(lambda: image.stat().st_size > 0, server, log)
            with _loop(image) as device:
                yield device
        finally:
            _unmount(image, server)
            image.unlink(missing_ok=True)


@contextmanager
def _loop(image: Path) -> Iterator[str]:
    device = _output("losetup", "--find", "--show", "--direct-io=on", str(image))
    with ExitStack() as stack:
        try:
            stack.callback(os.close, os.open(device, os.O_RDONLY))
        finally:
            # While the device is open here, this only marks it: the kernel detaches it at the last
            # close, which happens even when this process is killed.
            _output("losetup", "--detach", device)
        yield device


def _unmount(image: Path, server: subprocess.Popen[bytes]) -> None:
    """Unmount as soon as the loop device is released; nbdfuse then exits.

    It does not while another mount namespace has a copy of the mount; its caller terminates it.
    """
    deadline = time.monotonic() + _END_S
    while server.poll() is None and time.monotonic() < deadline:
        done = _start(["umount", str(image)])
        if done.returncode == 0:
            with suppress(subprocess.TimeoutExpired):
                server.wait(_UNMOUNTED_S)
            return
        time.sleep(0.02)
    _start(["umount", "--lazy", str(image)])


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in its own session, so that Ctrl-C does not reach it."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - an argument list, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=os.environ | {"PATH": _path()},
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):  # in a system call of a device that hangs
                process.wait(_END_S)


def _wait_for(ready: Callable[[], bool], server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while not ready():
        has_exited = server.poll() is not None
        if has_exited or time.monotonic() > deadline:
            reason = "exited" if has_exited else f"was not ready after {_READY_S:.0f} s"
            raise VolbenchError(
                f"{log.stem} {reason}: {_tail(log) or 'no output'}", hint=f"see {log}"
            )
        time.sleep(0.01)


def _output(*command: str) -> str:
    done = _start(command)
    if done.returncode:
        raise VolbenchError(
            f"{' '.join(command)} failed: {done.stderr.strip()}",
            hint="a block device needs root and free loop devices; an NBD URI needs neither",
        )
    return done.stdout.strip()


def _start(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - an argument list, no shell
        command,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PATH": _path()},
    )


def _path() -> str:
    """Return PATH with the sbin folders, which Debian omits for ordinary users."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip()[-500:] if log.exists() else ""
