"""A fio that a test holds: its campaign is not over before the test has done what it is about."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.fleet.hosts import RealHost
from tests.waiting import until

FIO = shutil.which("fio") or "fio"
_STAYS = """\
#!/bin/sh
if [ -e job.fio ] && grep -q '{pattern}' job.fio; then
    printf 'time_based=1\\nruntime=36000\\n' >>job.fio
    set -- --trigger-file={folder}/release "$@"
fi
exec {fio} "$@"
"""
_WAITS = """\
#!/bin/sh
if [ -e job.fio ] && grep -q '{pattern}' job.fio; then
    until [ -e {folder}/release ]; do sleep 0.1; done
fi
exec {fio} "$@"
"""


class HeldFio:
    """A program ``fio`` in a folder of its own, and the environment that finds it first.

    Args:
        folder: where to make its folder.
        pattern: of grep, in the job files of the runs that go on until they are released or ended;
            "" to hold all runs before fio starts instead.
    """

    def __init__(self, folder: Path, pattern: str = "") -> None:
        self.folder = folder / "held-fio"
        self.folder.mkdir(parents=True)
        script = (_STAYS if pattern else _WAITS).format(
            pattern=pattern, folder=self.folder, fio=FIO
        )
        (self.folder / "fio").write_text(script)
        (self.folder / "fio").chmod(0o755)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of a controller that uses it."""
        return {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def release(self) -> None:
        """Let its runs end, or start."""
        (self.folder / "release").touch()


@contextmanager
def held_on(hosts: Sequence[RealHost], pattern: str, *, before: bool = False) -> Iterator[None]:
    """Hold the runs of hosts whose job files match: endless, or before fio starts."""
    script = (_WAITS if before else _STAYS).format(pattern=pattern, folder="/run", fio="/run/fio")
    for host in hosts:
        (host.folder / "run/release").unlink(missing_ok=True)
        host.run("cp", FIO, "/run/fio")
        (host.folder / "run/held").write_text(script)
        (host.folder / "run/held").chmod(0o755)
        host.run("mount", "--bind", "/run/held", FIO)
    try:
        yield
    finally:
        for host in hosts:
            with suppress(AssertionError):  # it was off meanwhile
                host.run("umount", FIO)


def release(*hosts: RealHost, written_bytes: int = 0) -> None:
    """Let the held runs of hosts end, once they have written so much, or let them start."""
    for host in hosts:
        until(lambda host=host: _written_bytes(host) >= written_bytes)  # type: ignore[misc]  # mypy cannot infer it
        (host.folder / "run/release").touch()


def _written_bytes(host: RealHost) -> int:
    reported = host.run("sh", "-c", 'cat "/proc/$(pgrep -x fio | head -n 1)/io" || :').split()
    return int(reported[3]) if len(reported) > 3 else 0
