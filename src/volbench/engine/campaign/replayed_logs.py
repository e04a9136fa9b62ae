"""Logs of I/Os that runs replay: checked when planned, and named by their SHA-256 in the plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from volbench.errors import InputError
from volbench.fio.jobs.render_job import replayed_place, with_replayed_logs
from volbench.model.campaign.planned_run import Run, Section
from volbench.store.atomic_files import open_regular

# Largest log: fio keeps its I/Os in memory, and one message takes it to a host. Noticed by:
# tests/engine/campaign/test_replayed_logs.py::test_logs_that_cannot_be_replayed_are_refused
MAX_LOG_BYTES = 64 << 20
# First bytes of a log of fio, and of blktrace in both byte orders (linux/blktrace_api.h)
_FIO_LOG = re.compile(rb"fio version ([23]) iolog\s")
_BLKTRACE = (b"\x07\x74\x61\x65", b"\x65\x61\x74\x07")


def with_planned_logs(runs: Sequence[Run]) -> tuple[tuple[Run, ...], dict[str, bytes]]:
    """Return runs that replay copies in the campaign folder, and the logs by their SHA-256."""
    logs: dict[str, bytes] = {}
    for run in runs:
        for section in run.sections:
            path = run.effective(section).get("read_iolog")
            if path is not None:
                logs[path] = logs[path] if path in logs else _read_log(path)
                _check_files(run, section, path, logs[path])
    digests = {path: sha256(content).hexdigest() for path, content in logs.items()}
    names = {path: f"../../inputs/{digest}" for path, digest in digests.items()}
    inputs = {digests[path]: content for path, content in logs.items()}
    return tuple(with_replayed_logs(run, names) if names else run for run in runs), inputs


def _read_log(path: str) -> bytes:
    try:
        if not Path(path).is_absolute():
            raise FileNotFoundError(2, "it is not an absolute path")
        with open_regular(Path(path), max_bytes=MAX_LOG_BYTES) as file:
            content = file.read()
    except OSError as error:
        raise InputError(
            f"the log {path} cannot be read: {error.strerror or error}",
            hint="read_iolog names a file on this machine, which volbench sends to the hosts",
        ) from error
    if not _FIO_LOG.match(content) and not content.startswith(_BLKTRACE):
        raise InputError(
            f"{path} is neither a log of fio, version 2 or 3, nor a binary trace of blktrace",
            hint="record with write_iolog of fio, or: blkparse -d FILE",
        )
    return content


def _check_files(run: Run, section: Section, path: str, content: bytes) -> None:
    """Refuse a log that names other files than the volume, unless its I/O is redirected."""
    place = replayed_place(run, section)
    if "replay_redirect" in run.effective(section):
        return
    version = _FIO_LOG.match(content)
    if version is None:
        others = {"devices of the machine where it was recorded"}
    else:
        field = int(version[1]) - 2  # version 3 has the time before the name
        lines = map(str.split, content.decode("utf-8", "replace").splitlines()[1:])
        others = {fields[field] for fields in lines if len(fields) > field} - {place}
    if others:
        raise InputError(
            f"job {run.job}: the log {path} names {min(others)}, not {place}",
            hint=f"direct all of its I/O to the volume with replay_redirect: {run.volume.role}",
        )
