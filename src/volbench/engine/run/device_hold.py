"""Block device of a run on another machine: held open by the run's own program until it ends.

The descriptor is opened, and the identity of the device checked on it, by the process that becomes
fio or dd: it needs no controller, and no other disk can get the device's number meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from volbench.engine.guard.device_guard import Attachment
from volbench.engine.run.process_watch import Watched
from volbench.errors import RefusedError
from volbench.ingest.run_files import read_stderr
from volbench.model.campaign.planned_run import Run
from volbench.store.layout import RunFolder

_STATUS = 93  # Exit status of ``hold.sh`` where it did not start the program
_REPORT = re.compile(r"^volbench-hold: (\w+) ([0-9:]{0,40})$", re.MULTILINE)
_PROBLEMS = {
    "node": "it cannot be opened as a block device",
    "number": "its device number is {} now",
    "size": "it has {} sectors now",
    "boot": "the machine has restarted",
    "diskseq": "it was attached again",
}
_SECTOR_BYTES = 512


def held_open(run: Run, argv: Sequence[str], attachment: Attachment | None) -> list[str]:
    """Return the command of a run, started only while it holds its checked device open.

    Args:
        attachment: attachment of its device that the guard accepted; None to hold nothing.
    """
    pin = run.volume.pin
    if pin is None or attachment is None:
        return list(argv)
    return [
        *("sh", "-c", files("volbench.engine.run").joinpath("hold.sh").read_text("utf-8"), "hold"),
        *(run.volume.target, f"/sys/dev/block/{pin.major}:{pin.minor}"),
        *(str(pin.size_bytes // _SECTOR_BYTES), attachment.diskseq, attachment.boot_id),
        *argv,
    ]


def check_start(run: Run, folder: RunFolder, watched: Watched) -> None:
    """Check that the program was started on the device that the guard accepted."""
    if watched.exit_status != _STATUS or run.volume.pin is None:
        return
    found = _REPORT.search(read_stderr(run, folder))
    if found is None or found[1] not in _PROBLEMS:
        return
    target = run.volume.target
    raise RefusedError(
        f"{target} on {run.host} was replaced right before the start of {run.id}: "
        + _PROBLEMS[found[1]].format(found[2]),
        hint="nothing was written; examine it there with lsblk, attach the planned device again "
        "and continue with volbench resume DIR, or plan a new campaign",
    )
