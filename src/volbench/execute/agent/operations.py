"""Operations that a controller may ask of the agent: functions with typed answers.

A request names the function and has its arguments by their names; the answer travels as JSON, a
NamedTuple as a list, and is validated by the type that the function returns.
"""

from collections.abc import Callable

from volbench.execute.agent import (
    block_reads,
    cloud_metadata,
    facts,
    files,
    held_device,
    kernel_sampler,
    locks,
    processes,
    run_command,
    supervisor,
    used_blocks,
    volumes,
    watch,
)
from volbench.execute.agent.observation import process_io

_AS_USER = (
    block_reads.sample_nbd,
    block_reads.nbd_size,
    block_reads.reach_nbd,
    cloud_metadata.cloud_machine,
    facts.clock,
    facts.survey,
    files.fetch_folder,
    files.make_private_folder,
    files.owe,
    files.read_files,
    files.real_path,
    files.remove_exactly,
    files.remove_work_folder,
    files.user_id,
    files.which,
    files.write_files,
    kernel_sampler.sample_disks,
    locks.announce,
    locks.campaigns_beside,
    locks.lock_holder,
    locks.places,
    locks.release,
    locks.reserve,
    processes.end_process,
    processes.identify_process,
    run_command.run,
    run_command.run_on_files,
    supervisor.launch,
    supervisor.pid_of,
    supervisor.send_signal,
    supervisor.stop_sampling,
    watch.is_attended,
    watch.watch,
)
# Operations on devices and processes, which run as root where the inventory says ``sudo: yes``
_AS_ROOT = (
    block_reads.sample_blocks,
    held_device.edges_digest,
    process_io.sample_processes,
    processes.lifetime,
    used_blocks.used_blocks,
    volumes.describe_files,
    volumes.describe_volumes,
    volumes.changed_files,
    volumes.file_identities,
    volumes.folder_contents,
)

OPERATIONS: "dict[str, Callable[..., object]]" = {
    operation.__name__: operation for operation in (*_AS_USER, *_AS_ROOT)
}
AS_ROOT = frozenset(operation.__name__ for operation in _AS_ROOT)

USUAL_LIMIT_S = 60.0
# Seconds within which an operation ends, beside the time that its arguments allow it; longer than
# the agent waits for a hung volume (`snapshot.READ_S`), so that its reason arrives.
# Noticed by: tests/execute/agent/test_snapshot.py::test_a_hung_volume_is_skipped
LIMITS_S = {
    "cloud_machine": 10.0,
    "describe_volumes": 180.0,
    "launch": 45.0,  # The agent itself waits 30 s for a supervisor on a busy host.
    "run": 15.0,
    "run_on_files": 15.0,
    "sample_disks": 30.0,  # for a sample beyond its interval, on a busy host
    "used_blocks": used_blocks.REPORT_S + 60.0,
    "sample_processes": 90.0,  # with the longest interval of the agent
    "write_files": 600.0,
}
