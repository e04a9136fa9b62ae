"""file-not-device: a file was measured where the device was likely meant."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.campaign.target import VolumeKind
from volbench.model.results.finding import Finding, Severity

_FILES = {VolumeKind.FILE: "a file", VolumeKind.DIRECTORY: "files in a directory"}
_ROOT_ROLE = "os"


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a note when a volume other than the root disk was tested through a filesystem."""
    del context
    volume = view.run.volume
    if volume.kind not in _FILES or volume.role == _ROOT_ROLE:
        return
    filesystem = view.volume.filesystem if view.volume is not None else ""
    on = f" on {filesystem}" if filesystem else ""
    yield RULE.finding(
        view,
        f"{volume.role} was tested through {_FILES[volume.kind]}{on}: the filesystem is part of"
        " the result.",
        {"kind": volume.kind.value, "filesystem": filesystem or "not known"},
    )


RULE = Rule(
    id="file-not-device",
    title="a file was measured, not the device",
    severity=Severity.NOTE,
    looks_at="Volumes that are a file or a directory, in any role but `os`.",
    why=(
        "A filesystem allocates, writes a journal and answers reads of blocks that were never"
        " written. The result is that of both."
    ),
    advice=(
        "Name an empty device with --on data=/dev/..., if the disk is meant. The root disk can"
        " only be tested through a file."
    ),
    check=check,
)
