"""A fio that a test holds: its campaign is not over before the test has done what it is about."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

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
[ -e job.fio ] && until [ -e {folder}/release ]; do sleep 0.1; done
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
        self.folder.mkdir()
        script = (_STAYS if pattern else _WAITS).format(
            pattern=pattern, folder=self.folder, fio=shutil.which("fio")
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
