"""Recorder of block requests from tracefs, in an instance with buffers of its own.

Raw pages of the buffers are read ten times a second and handed on; nothing is written here. Events
that find the buffer of their CPU full are lost; the kernel counts them.
"""

import base64
import glob
import os
import subprocess
import time
import typing
import zlib
from contextlib import ExitStack

from volbench.execute.agent.agent_error import AgentError, of_os_error
from volbench.execute.agent.kernel_sampler import read

_TRACEFS = "/sys/kernel/tracing"
_PREFIX = "volbench-"
_EVENTS = ("block_rq_issue", "block_rq_complete")
# Per CPU: the events of a second at 100,000 IOPS. Noticed by: benchmarks/trace.py
_BUFFER_KB = 16 << 10
_MAX_BUFFERS_KB = 512 << 10  # of all CPUs. A trade-off: memory against lost events
# Between two reads of the buffers: a tenth of the time that they last. Noticed by:
# benchmarks/trace.py
_POLL_S = 0.1
# Pages of a CPU that are read at once: 4 MB, enough that numpy costs little a page. Noticed by:
# benchmarks/trace.py
PAGES = 1 << 10
_LEVEL = 1  # Of zlib, for a link. A trade-off: CPU of the host against bytes on the link
_LOST = (b"overrun:", b"dropped events:", b"commit overrun:")


def find_tracefs() -> str:
    """Return the root of tracefs; mount it if it is not.

    Raises:
        AgentError: this user may not record (``denied``), or the kernel cannot (``missing``).
    """
    if os.geteuid():
        raise AgentError("denied", "only root may")
    for line in read("/proc/mounts").decode("utf-8", "replace").splitlines():
        fields = line.split()
        if fields[2] == "tracefs":
            return fields[1]
    mounted = subprocess.Popen(
        ["mount", "-t", "tracefs", "tracefs", _TRACEFS],  # noqa: S607 - found on PATH
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    reason = mounted.communicate()[1].decode("utf-8", "replace").strip()
    if mounted.returncode or not os.path.isdir(_TRACEFS + "/events/block/block_rq_issue"):
        raise AgentError("missing", reason or "no events of block devices")
    return _TRACEFS


def recordable_disks(stacks: "list[list[str]]") -> "dict[str, str]":
    """Return the disks whose requests can be recorded, with their folders in sysfs.

    A partition stands for its disk, and a device without requests of its own, such as dm, for the
    disks below it.

    Args:
        stacks: kernel names of each device, and of those below it.

    Raises:
        AgentError: see `find_tracefs`; ``refused`` if no device has requests.
    """
    find_tracefs()
    found = {}
    for stack in stacks:
        folders = [os.path.realpath("/sys/class/block/" + name) for name in stack]
        disks = [
            os.path.dirname(path) if os.path.exists(path + "/partition") else path
            for path in folders
        ]
        with_requests = [path for path in disks if os.path.isdir(path + "/mq")]
        own = with_requests[:1] if with_requests[:1] == disks[:1] else with_requests
        found.update({os.path.basename(path).replace("!", "/"): path for path in own})
    if not found:
        raise AgentError("refused", ", ".join(stack[0] for stack in stacks))
    return found


def record_requests(
    stacks: "list[list[str]]", *, is_packed: bool
) -> "typing.Iterator[dict[str, typing.Any] | None]":
    """Yield what the kernel records of the requests of disks, until `end_recording`.

        {"page_bytes": n, "start_ns": n, "formats": [text, text], "disks": {name: [number, size]}}
                                     once: formats of issues and completions; ``major:minor``, and
                                     sectors of 512 bytes
        {"cpu": n, "pages": pages}   whole pages of the buffer of a CPU
        {"is_read": True}            all buffers were read
        {"lost": n}                  at the end

    Args:
        stacks: see `recordable_disks`.
        is_packed: whether pages are compressed with zlib, in base64, as JSON needs it; else they
            are a view that is valid until the next part.
    """
    disks = recordable_disks(stacks)
    root = find_tracefs()
    with ExitStack() as stack:
        numbers = {name: read(path + "/dev").decode().strip() for name, path in disks.items()}
        instance = _made_instance(root, stack, [number.split(":") for number in numbers.values()])
        pipes = _opened_pipes(instance, stack)
        page_bytes = int(read(instance + "/buffer_subbuf_size_kb") or 4) * 1024
        buffer = memoryview(bytearray(PAGES * page_bytes))
        formats = [root + "/events/block/{}/format".format(event) for event in _EVENTS]
        start_ns = int(time.monotonic() * 1e9)
        _write(instance + "/tracing_on", "1")  # before the first part: `end_recording` may follow
        yield {
            "page_bytes": page_bytes,
            "start_ns": start_ns,
            "formats": [read(path).decode() for path in formats],
            "disks": {name: [numbers[name], int(read(disks[name] + "/size"))] for name in disks},
        }
        is_on = True
        while is_on:
            time.sleep(_POLL_S)
            is_on = read(instance + "/tracing_on").strip() == b"1"
            is_more = True
            while is_more:
                is_more = False
                for cpu, descriptor in pipes:
                    pages = buffer[: page_bytes * _filled(descriptor, buffer, page_bytes)]
                    is_more = is_more or len(pages) == len(buffer)
                    if pages:
                        yield {"cpu": cpu, "pages": _packed(pages) if is_packed else pages}
                yield {"is_read": True}
        yield {"lost": _lost(instance)}


def end_recording() -> None:
    """End the recordings of this process, which yield what is left."""
    path = _instance(find_tracefs()) + "/tracing_on"
    if os.path.exists(path):
        _write(path, "0")


def _instance(root: str) -> str:
    return "{}/instances/{}{}".format(root, _PREFIX, os.getpid())


def _remove_left_instances(root: str) -> None:
    """Remove the instances of recorders that were killed; those in use cannot be removed."""
    for folder in glob.glob(root + "/instances/" + _PREFIX + "*"):
        pid = os.path.basename(folder)[len(_PREFIX) :]
        if pid.isdigit() and not os.path.exists("/proc/" + pid):
            try:
                os.rmdir(folder)
            except OSError:  # in use by a process of another container
                continue


def _made_instance(root: str, stack: "ExitStack[typing.Any]", devices: "list[list[str]]") -> str:
    _remove_left_instances(root)
    instance = _instance(root)
    buffer_kb = min(_BUFFER_KB, _MAX_BUFFERS_KB // (os.cpu_count() or 1))
    chosen = " || ".join(
        "dev == {}".format(int(major) << 20 | int(minor)) for major, minor in devices
    )
    settings = [
        ("tracing_on", "0"),
        ("trace_clock", "mono"),
        ("options/overwrite", "0"),
        ("buffer_size_kb", str(buffer_kb)),
    ]
    settings += [("events/block/{}/filter".format(event), chosen) for event in _EVENTS]
    settings += [("events/block/{}/enable".format(event), "1") for event in _EVENTS]
    try:
        os.mkdir(instance)
        stack.callback(os.rmdir, instance)
        for name, text in settings:
            _write(instance + "/" + name, text)
    except OSError as error:
        reason = of_os_error(error).message
        raise AgentError("failed", "{} cannot be set up: {}".format(instance, reason)) from error
    return instance


def _opened_pipes(instance: str, stack: "ExitStack[typing.Any]") -> "list[tuple[int, int]]":
    """Return CPU and descriptor of each buffer."""
    pipes = []
    for folder in glob.glob(instance + "/per_cpu/cpu*"):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(folder + "/trace_pipe_raw", flags)
        stack.callback(os.close, descriptor)
        pipes.append((int(os.path.basename(folder)[len("cpu") :]), descriptor))
    return pipes


def _filled(descriptor: int, buffer: memoryview, page_bytes: int) -> int:
    """Read pages of a buffer; return how many."""
    for count in range(PAGES):
        try:
            page = buffer[count * page_bytes : (count + 1) * page_bytes]
            if not os.readv(descriptor, [page]):
                return count
        except BlockingIOError:
            return count
    return PAGES


def _packed(pages: memoryview) -> str:
    return base64.b64encode(zlib.compress(pages, _LEVEL)).decode()


def _lost(instance: str) -> int:
    """Return the events that found their buffer full."""
    lost = 0
    for folder in glob.glob(instance + "/per_cpu/cpu*"):
        for line in read(folder + "/stats").splitlines():
            if line.startswith(_LOST):
                lost += int(line.rpartition(b" ")[2])
    return lost


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
