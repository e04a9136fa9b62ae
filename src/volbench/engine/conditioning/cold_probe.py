"""The cold-volume probe: a volume in, raw logs in a folder and a Probed out. It only ever reads.

Two separate processes of fio read the same blocks, one I/O at a time: the first read of a block is
slow where it has to be fetched, the second is not. A third one compares blocks with zeros.
"""

from __future__ import annotations

import secrets

from volbench.analyse.time.cold_volume import ColdProbe, describe, judge_cold, pair_by_offset
from volbench.engine.conditioning.cold_reads import READ_BYTES, SPREAD_BYTES, Reader, make_folder
from volbench.engine.guard.device_guard import check_identity
from volbench.engine.run.stop_request import Stop
from volbench.errors import OutputError, RefusedError, StoppedError, VolbenchError
from volbench.execute.protocol import Executor
from volbench.model.base import Frozen
from volbench.model.campaign.event import Listener, Notice
from volbench.model.campaign.planned_run import Campaign
from volbench.model.campaign.target import Volume, VolumeKind
from volbench.store.archive import write_atomic
from volbench.store.journal import utc_now
from volbench.store.layout import Layout, ProbeFolder
from volbench.store.small_files import read_model


class Probed(Frozen):
    """What a probe found, and how it was made.

    Attributes:
        role: of the volume.
        target: device, file, directory or NBD uri.
        started_utc: ISO 8601 with ``Z``.
        ended_utc: the same.
        seed: of the offsets; None when nothing was read.
        cold: None when nothing could be judged.
        reason: why not; empty otherwise.
    """

    role: str
    target: str
    started_utc: str
    ended_utc: str
    seed: int | None = None
    cold: ColdProbe | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        """What was found, for people."""
        return self.reason if self.cold is None else describe(self.cold)


def probe_cold(
    executor: Executor, volume: Volume, folder: ProbeFolder, *, fio: str, stop: Stop
) -> Probed:
    """Read a sample of a volume twice, look at a sample for zeros, and note what was found.

    Args:
        executor: the machine.
        volume: pinned, when it is a device.
        folder: for job files, logs and ``probe.json``; made when missing.
        fio: path of the binary.
        stop: the user's wish.

    Raises:
        RefusedError: the device is not the one that was pinned.
        FioError: fio could not read the volume.
        OutputError: fio's output can't be used.
        ArchiveError: the folder can't be written.
        StoppedError: the user stopped it.
    """
    started_utc = utc_now()
    # Drawn anew each time: blocks that an earlier probe has read are warm.
    seed = 1 + secrets.randbelow(2**31 - 1)
    size_bytes, reason = _readable(executor, volume)
    cold = None
    if not reason:
        cold = _judge(Reader(executor, volume, size_bytes, folder, fio, seed, stop))
    return _noted(
        folder,
        Probed(
            role=volume.role,
            target=volume.target,
            started_utc=started_utc,
            ended_utc=utc_now(),
            seed=None if cold is None else seed,
            cold=cold,
            reason=reason,
        ),
    )


def _readable(executor: Executor, volume: Volume) -> tuple[int | None, str]:
    """Return the size as far as it is known, and why there is nothing to read."""
    match volume.kind:
        case VolumeKind.NBD:
            return None, ""
        case VolumeKind.DIRECTORY:
            return None, "nothing to probe: it is a directory; probe the device it is on"
        case VolumeKind.UNKNOWN:
            return None, "nothing to probe: nobody told what it is"
        case VolumeKind.DEVICE:
            check_identity(executor, volume)
            return None if volume.pin is None else volume.pin.size_bytes, ""
        case VolumeKind.FILE:
            found = executor.stat(volume.target)
            size_bytes = 0 if found is None else found.size_bytes
            absent = "nothing to probe: the file is empty or does not exist yet"
            return size_bytes, "" if size_bytes >= READ_BYTES else absent


def _judge(reader: Reader) -> ColdProbe:
    first, second = reader.latencies_s("first"), reader.latencies_s("second")
    before, after = pair_by_offset(first, second)
    if not before:
        raise OutputError(
            f"no block of {reader.volume.target} was read twice",
            hint=f"fio's logs are in {reader.folder.path}",
        )
    reach_bytes = reader.size_bytes or max(first) + SPREAD_BYTES
    return judge_cold(before, after, zero_share=reader.zero_share(reach_bytes=reach_bytes))


def probe_campaign(
    layout: Layout,
    campaign: Campaign,
    *,
    fio: str,
    executor: Executor,
    listener: Listener,
    stop: Stop,
) -> None:
    """Probe every volume that the plan wants probed and that was not probed yet.

    A volume that can't be probed is told and noted; the campaign goes on.

    Args:
        layout: the campaign folder.
        campaign: the plan, of which no Run has started.
        fio: path of the binary.
        executor: the machine.
        listener: told what is probed and what was found.
        stop: the user's wish; a probe that was stopped leaves no result.

    Raises:
        RefusedError: a device is not the one that was planned.
        ArchiveError: the folder can't be written.
    """
    volumes = {run.volume.role: run.volume for run in campaign.runs}
    for role in campaign.cold_probe_roles:
        folder = layout.probe(role)
        if role not in volumes or folder.result.exists():
            continue
        target = volumes[role].target
        listener(Notice(f"probing {target}: is it cold?"))
        try:
            found = probe_cold(executor, volumes[role], folder, fio=fio, stop=stop)
        except StoppedError:
            return
        except RefusedError:
            raise
        except VolbenchError as error:
            now = utc_now()
            found = _noted(
                folder,
                Probed(
                    role=role, target=target, started_utc=now, ended_utc=now, reason=error.message
                ),
            )
        listener(Notice(f"{target} is {found.words}" if found.cold else found.words))


def _noted(folder: ProbeFolder, probed: Probed) -> Probed:
    make_folder(folder.path)
    write_atomic(folder.result, probed.model_dump_json(indent=1) + "\n")
    return probed


def read_probe(folder: ProbeFolder) -> Probed | None:
    """Return what a probe found; None when there was none.

    Raises:
        OutputError: probe.json is damaged.
    """
    return read_model(folder.result, Probed)
