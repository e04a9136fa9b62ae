"""Operations that a controller may ask of the agent, by name."""

import os
from collections.abc import Callable

from volbench.execute.agent import (
    block_reads,
    cloud_metadata,
    facts,
    files,
    held_device,
    kernel_sampler,
    locks,
    nbd_export,
    processes,
    run_command,
    supervisor,
    volumes,
    watch,
)
from volbench.execute.agent.observation import process_io

OPERATIONS: "dict[str, Callable[..., object]]" = {
    "real_path": files.real_path,
    "read_files": files.read_files,
    "which": files.which,
    "write_files": files.write_files,
    "remove_exactly": files.remove_exactly,
    "owe": files.owe,
    "make_private_folder": files.make_private_folder,
    "remove_work_folder": files.remove_work_folder,
    "user_id": os.getuid,
    "edges_digest": held_device.edges_digest,
    "run": run_command.run,
    "run_on_files": run_command.run_on_files,
    "launch": supervisor.launch,
    "pid_of": supervisor.pid_of,
    "send_signal": supervisor.send_signal,
    "stop_sampling": supervisor.stop_sampling,
    "watch": watch.watch,
    "reserve": locks.reserve,
    "release": locks.release,
    "lock_holder": locks.lock_holder,
    "fetch_folder": files.fetch_folder,
    "survey": facts.survey,
    "cloud_machine": cloud_metadata.cloud_machine,
    "describe_volumes": volumes.describe_volumes,
    "describe_files": volumes.describe_files,
    "file_identities": volumes.file_identities,
    "folder_contents": volumes.folder_contents,
    "nbd_size": block_reads.nbd_size,
    "reach_nbd": nbd_export.reach_nbd,
    "sample_disks": kernel_sampler.sample_disks,
    "sample_processes": process_io.sample_processes,
    "sample_blocks": block_reads.sample_blocks,
    "sample_nbd": block_reads.sample_nbd,
    "flush": block_reads.flush,
    "identify_process": processes.identify,
    "end_process": processes.end_process,
    "find_strays": processes.find_strays,
    "lifetime": processes.lifetime,
    "open_files": processes.open_files,
}
"""Name of each operation and its function, which is called with keyword arguments."""

AS_ROOT: "frozenset[str]" = frozenset(
    {
        "describe_files",
        "describe_volumes",
        "edges_digest",
        "end_recording",
        "file_identities",
        "flush",
        "folder_contents",
        "lifetime",
        "record_requests",
        "recordable_disks",
        "sample_blocks",
        "sample_processes",
    }
)
"""Operations on devices and processes, which run as root where the inventory says ``sudo: yes``."""
