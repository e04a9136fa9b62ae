"""A volume in; what earlier Runs left of it in memory written, before the next Run is measured."""

from __future__ import annotations

from volbench.engine.guard.path_checks import nearest_existing
from volbench.errors import TransportError
from volbench.execute.protocol import Executor
from volbench.model.campaign.target import Volume, VolumeKind

FLUSH_S = 600.0
"""A provider's cache that is full can hold writes back for minutes."""


def flush_volume(executor: Executor, volume: Volume) -> str:
    """Let the kernel write every dirty page of a volume, and wait for that.

    Whatever an earlier Run left in memory would be written during the next one otherwise, and be
    counted as its load: the kernel keeps dirty pages for about 30 s.

    Returns:
        Why that did not work; empty when it did, or there is nothing to write.
    """
    match volume.kind:
        case VolumeKind.NBD:
            return ""
        case VolumeKind.DEVICE:
            argv = ["sync", volume.target]
        case VolumeKind.FILE | VolumeKind.DIRECTORY:
            argv = ["sync", "-f", nearest_existing(executor, volume.target)]
    try:
        done = executor.run(argv, timeout_s=FLUSH_S)
    except TransportError as error:
        if error.transient:
            raise
        return error.message
    return done.stderr.strip() if done.exit_status else ""
