"""Fleet whose hosts are all this machine: campaigns over agents without sshd."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from volbench.execute import connect
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import Channel, SubprocessChannel
from volbench.execute.protocol import Executor
from volbench.model.campaign.host import Host

_HEAD = "defaults: {size: 64k, runtime: 1s, time_based: 1, ioengine: psync, rate_iops: 20}\n"


@dataclass(frozen=True)
class LoopbackFleet:
    """Pretended hosts, each with a folder to measure in and one for volbench's own files.

    Attributes:
        folder: of profile, inventory and results.
        names: of the hosts.
    """

    folder: Path
    names: tuple[str, ...]

    @property
    def inventory(self) -> Path:
        """The list of hosts."""
        return self.folder / "fleet.yaml"

    def data(self, name: str) -> Path:
        """Return the folder that a host measures in."""
        return self.folder / name / "data"

    def work(self, name: str) -> Path:
        """Return where a host keeps the files of running campaigns."""
        return self.folder / name / ".volbench"

    def profile(self, text: str = "jobs:\n  a: {rw: randread, bs: 4k}\n") -> Path:
        """Write a profile with short jobs."""
        path = self.folder / "p.yaml"
        head = "name: p\nsample: 500ms\ndevice_sample: 500ms\nvolumes: {data: /nowhere}\n"
        path.write_text(head + _HEAD + text)
        return path


@contextmanager
def loopback_fleet(
    folder: Path, *names: str, channels: Mapping[str, Channel] | None = None
) -> Iterator[LoopbackFleet]:
    """Connect every host of an inventory to this machine inside the block.

    Args:
        folder: for files of the fleet.
        names: of the hosts.
        channels: of hosts that are not simply reached.
    """
    fleet = LoopbackFleet(folder, names)
    lines = []
    for number, name in enumerate(names, 1):
        fleet.data(name).mkdir(parents=True, exist_ok=True)
        volumes = f"volumes: {{data: {fleet.data(name)}}}"
        lines.append(
            f"  {name}: {{address: 192.0.2.{number}, workdir: {fleet.work(name)}, {volumes}}}"
        )
    fleet.inventory.write_text("\n".join(["hosts:", *lines, ""]))

    def executor(host: Host) -> Executor:
        channel = (channels or {}).get(host.name) or SubprocessChannel(host.name)
        return AgentExecutor(channel, work_folder=host.workdir)

    @contextmanager
    def reached(*_arguments: object, **_options: object) -> Iterator[Callable[[Host], Executor]]:
        yield executor

    with mock.patch.object(connect, "open_ssh", reached):
        yield fleet
