"""Read-only cold-volume probe.

Pairs of fio processes read the same blocks in sequence at queue depth 1: the first read of a block
is slow if the provider has to fetch it, the second is not. A last one compares blocks with zeros.
"""

from __future__ import annotations

import secrets

from volbench.analyse.time.cold_volume import judge_cold, pair_by_offset
from volbench.engine.conditioning.cold_reads import (
    READ_BYTES,
    ROUNDS,
    SPREAD_BYTES,
    Reader,
    make_folder,
)
from volbench.engine.guard.device_guard import check_identity
from volbench.engine.hosts.described_volumes import look_at_volume
from volbench.engine.run.stop_request import StopRequest
from volbench.errors import OutputError, RefusedError, StoppedError, VolbenchError
from volbench.execute.agent.volumes import VolumeQuestion
from volbench.execute.protocol import Executor
from volbench.ingest.run_files import Probed
from volbench.model.campaign.event import Listener, Notice
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.results.provenance import ColdProbe
from volbench.store.atomic_files import write_atomic
from volbench.store.journal import utc_now
from volbench.store.layout import Layout, ProbeFolder
from volbench.store.log_files import raw_checksums


def probe_cold(
    executor: Executor, volume: Volume, folder: ProbeFolder, *, fio: str, stop: StopRequest
) -> Probed:
    """Read a sample of a volume twice, compare a sample with zeros, and store the result."""
    started_utc = utc_now()
    # A new seed for each probe: blocks read by an earlier probe are warm.
    seed = 1 + secrets.randbelow(2**31 - 1)
    size_bytes, reason = _readable(executor, volume)
    cold = None
    if not reason:
        cold = _judge_reads(Reader(executor, volume, size_bytes, folder, fio, seed, stop))
    return _stored(
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
    """Return the size if known, and the reason why the volume cannot be read."""
    match volume.kind:
        case _ if volume.parts:
            return None, "nothing to probe: the target is several devices or files"
        case VolumeKind.NBD:
            return None, ""
        case VolumeKind.DIRECTORY:
            return None, "nothing to probe: the target is a directory; probe its device"
        case VolumeKind.UNKNOWN:
            return None, "nothing to probe: the kind of the volume is unknown"
        case VolumeKind.DEVICE:
            check_identity(volume, look_at_volume(executor, VolumeQuestion(volume.target)))
            return volume.size_bytes, ""
        case VolumeKind.FILE:
            file = look_at_volume(executor, VolumeQuestion(volume.target)).stat
            size_bytes = 0 if file is None else file.size_bytes
            absent = "nothing to probe: the file is empty or does not exist yet"
            return size_bytes, "" if size_bytes >= READ_BYTES else absent


def _judge_reads(reader: Reader) -> ColdProbe:
    first: dict[int, float] = {}
    second: dict[int, float] = {}
    for part in range(ROUNDS):
        # Blocks of earlier parts are warm.
        first = reader.latencies_s("first", part) | first
        second = reader.latencies_s("second", part) | second
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
    stop: StopRequest,
) -> None:
    """Probe every volume that the plan selects and that has not been probed yet.

    If a probe fails, the reason is stored as its result and the campaign continues.
    """
    volumes = {run.volume.role: run.volume for run in campaign.runs}
    for role in campaign.cold_probe_roles:
        folder = layout.probe(role)
        if role not in volumes or folder.result.exists():
            continue
        target = volumes[role].target
        listener(Notice(f"checking {target}: is it cold?"))
        try:
            probed = probe_cold(executor, volumes[role], folder, fio=fio, stop=stop)
        except StoppedError:
            return
        except RefusedError:
            raise
        except VolbenchError as error:
            now = utc_now()
            failed = Probed(
                role=role, target=target, started_utc=now, ended_utc=now, reason=error.message
            )
            probed = _stored(folder, failed)
        listener(Notice(f"{target} is {probed.words}" if probed.cold else probed.words))


def _stored(folder: ProbeFolder, probed: Probed) -> Probed:
    make_folder(folder.path)
    files = {
        f"{step.name}/{name}": digest
        for step in sorted(folder.path.iterdir())
        if step.is_dir()
        for name, digest in raw_checksums(step).items()
    }
    whole = probed.model_copy(update={"files": files})
    write_atomic(folder.result, whole.model_dump_json(indent=1) + "\n")
    return whole
