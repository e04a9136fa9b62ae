"""What every executor must do: here, in a script, over a channel, over SSH, in a pod."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor, FakeProcess
from tests.execute.host_files import stat_of, write
from tests.extensions.kubernetes.image import NAME
from tests.extensions.kubernetes.local_cluster import LocalCluster
from tests.fleet.hosts import Fleet, fleet
from tests.waiting import until
from volbench.errors import TransportError
from volbench.execute.agent.files import real_path
from volbench.execute.agent.processes import lifetime as lifetime_of
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed, Executor
from volbench.execute.ssh.connection import open_pool
from volbench.execute.ssh.ssh_channel import ssh_executor
from volbench.extensions.kubernetes.cluster import Cluster, open_cluster
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec
from volbench.extensions.kubernetes.manifests import WORK_MOUNT
from volbench.extensions.kubernetes.pod import require_pod
from volbench.extensions.kubernetes.pod_executor import PodExecutor
from volbench.extensions.kubernetes.pod_placement import create_objects, wait_for_hosts
from volbench.extensions.kubernetes.removal import remove_campaign
from volbench.model.campaign.host import Host

PATIENCE = 200
DETACHED = [
    "subprocess",
    pytest.param("ssh", marks=pytest.mark.root),
    pytest.param("pod", marks=pytest.mark.kubernetes),
]
"""Executors whose programs outlive the controller."""


@dataclass(frozen=True)
class Machine:
    """A machine with the same things on it, whatever it is made of.

    Below `root`: ``text`` (4 bytes: "one" and a line end), ``folder`` with ``b`` and ``a`` in it,
    ``link`` to ``folder``, ``dangling`` to ``missing``. The program ``sh`` does what the tests ask.
    """

    executor: Executor
    root: str


def _furnish(root: Path, seen_as: str) -> None:
    (root / "text").write_text("one\n", encoding="utf-8")
    (root / "folder").mkdir()
    for name in ("b", "a"):
        (root / "folder" / name).write_text("", encoding="utf-8")
    (root / "link").symlink_to(f"{seen_as}/folder")
    (root / "dangling").symlink_to(f"{seen_as}/missing")


def _here(executor: Executor, root: Path) -> Machine:
    _furnish(root, str(root))
    return Machine(executor, str(root))


def _fake() -> Machine:
    def answer(argv: tuple[str, ...]) -> Completed:
        return Completed(argv, 3, "out\n", "err\n")

    def begin(argv: tuple[str, ...]) -> FakeProcess:
        if "exec sleep" in argv[-1]:
            return FakeProcess(["started\n"] * PATIENCE, exit_status=None)
        return FakeProcess(["", "one\n", "two\n"], exit_status=5)

    executor = FakeExecutor(
        files={"/r/text": "one\n", "/r/folder/a": "", "/r/folder/b": ""},
        links={"/r/link": "/r/folder", "/r/dangling": "/r/missing"},
        answers={"sh": answer},
        processes={"sh": begin},
    )
    return Machine(executor, "/r")


@pytest.fixture(scope="module")
def ssh_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Hand out a host with the tools of coreutils."""
    with fleet(1, tmp_path_factory.mktemp("coreutils")) as hosts:
        yield hosts


@contextmanager
def _by_ssh(hosts: Fleet, name: str, folder: Path) -> Iterator[Machine]:
    root = hosts[0].tmp / name
    root.mkdir()
    _furnish(root, f"/tmp/{name}")
    host = Host(name="h0", address=hosts[0].address, user="root", key=str(hosts.key))
    pool = open_pool([host], config=folder / "config", known_hosts=hosts.known_hosts)
    try:
        yield Machine(ssh_executor(host, pool), f"/tmp/{name}")
    finally:
        pool.close()


@pytest.fixture(scope="module")
def pod_host(cluster: LocalCluster) -> Iterator[tuple[Host, Cluster]]:
    """Hand out a pod with the tools of busybox."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(cluster.kubeconfig))
        api = open_cluster()
    spec = ClusterSpec(
        campaign="volbench-contract",
        image=NAME,
        image_pull_policy="Never",
        namespace=api.namespace,
        os_disk=True,
        timeout_s=60,
    )
    create_objects(api, spec)
    (host,) = wait_for_hosts(api, spec)
    yield host, api
    remove_campaign(api, spec.campaign)
    api.close()


def _in_pod(host: Host, cluster: Cluster, name: str) -> Machine:
    executor = PodExecutor(host.name, require_pod(host), cluster)
    root = f"{WORK_MOUNT}/{name}"
    script = (
        'mkdir "$1" && cd "$1" && echo one >text && mkdir folder && touch folder/a folder/b && '
        'ln -s "$1/folder" link && ln -s "$1/missing" dangling'
    )
    assert executor.run(["sh", "-c", script, "sh", root]).exit_status == 0
    return Machine(executor, root)


@contextmanager
def _machine(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Machine]:
    match kind:
        case "local":
            yield _here(LocalExecutor(), folder.resolve())
        case "fake":
            yield _fake()
        case "subprocess":
            yield _here(AgentExecutor(SubprocessChannel("here")), folder.resolve())
        case "pod":
            host, cluster = request.getfixturevalue("pod_host")
            yield _in_pod(host, cluster, folder.name)
        case _:
            hosts = request.getfixturevalue("ssh_host")
            with _by_ssh(hosts, folder.name, folder) as machine:
                yield machine


@pytest.fixture(params=["local", "fake", *DETACHED])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """Hand out each kind of machine in turn."""
    with _machine(request.param, request, tmp_path) as found:
        yield found
        found.executor.close()


@pytest.fixture(params=DETACHED)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    """Hand out each kind of machine whose programs outlive the controller."""
    with _machine(request.param, request, tmp_path) as found:
        yield found
        found.executor.close()


def test_a_program_runs_to_its_end(machine: Machine) -> None:
    """Status, output and errors of a program come back apart."""
    argv = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert machine.executor.run(argv) == Completed(tuple(argv), 3, "out\n", "err\n")


def test_a_missing_program_is_a_transport_error(machine: Machine) -> None:
    """A program that is not there is named, with the way to look for it."""
    with pytest.raises(TransportError, match="no-such-program cannot be started") as caught:
        machine.executor.run(["no-such-program"])
    assert "command -v no-such-program" in caught.value.hint
    with pytest.raises(TransportError):  # at once, not a process that failed
        machine.executor.start(["no-such-program"], cwd=machine.root, stderr=f"{machine.root}/e")


def test_a_program_runs_on_files_that_go_away(remote: Machine) -> None:
    """Texts arrive unchanged in files, which have no names that a kill could leave behind."""
    texts = ["it's $HOME\n", "", "two\nlines"]
    script = 'for f; do wc -c <"$f"; done; cat -- "$@"; exit 4'
    done = remote.executor.run(["sh", "-c", script, "sh"], texts=texts)
    lengths = done.stdout.split("\n")[:3]
    assert done.exit_status == 4
    assert list(map(int, lengths)) == [11, 0, 9]
    assert done.stdout.endswith("".join(texts))


def test_symlinks_are_resolved(machine: Machine) -> None:
    """Every symlink on the way is followed, and missing parts are kept."""
    root = machine.root
    real = {
        "link/a": "folder/a",
        "link/../text": "text",
        "dangling": "missing",
        "link/new/file": "folder/new/file",
        "./folder//a": "folder/a",
    }
    assert {name: machine.executor.ask(real_path, f"{root}/{name}") for name in real} == {
        name: f"{root}/{path}" for name, path in real.items()
    }
    assert machine.executor.ask(real_path, "/") == "/"


def test_output_is_read_as_it_arrives(machine: Machine) -> None:
    """Each part of standard output is told once, and the status stays."""
    process = machine.executor.start(
        ["sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.1; done; echo two; exit 5"],
        cwd=machine.root,
        stderr=f"{machine.root}/stderr",
    )
    assert process.pid > 0
    assert process.wait(0) is None
    parts: list[str] = []

    def read_part() -> str:
        assert process.wait(0.05) is None
        parts.append(process.read_output())
        return parts[-1]

    until(read_part)
    write(machine.executor, f"{machine.root}/go")
    until(lambda: process.wait(0.05) is not None)
    assert "".join([*parts, process.read_output()]) == "one\ntwo\n"
    assert process.read_output() == ""
    assert process.poll() == process.wait(1.0) == 5
    process.signal(signal.SIGKILL)
    assert process.poll() == 5


def test_a_process_is_ended_by_a_signal(machine: Machine) -> None:
    """A process runs until it is signalled, and its status names the signal."""
    process = machine.executor.start(
        ["sh", "-c", "echo started; exec sleep 1000"],
        cwd=machine.root,
        stderr=f"{machine.root}/stderr",
    )
    started = ""
    while "started" not in started:
        assert process.wait(0.01) is None
        started += process.read_output()
    assert process.poll() is None
    process.signal(signal.SIGTERM)
    until(lambda: process.wait(0.05) is not None)
    assert process.poll() == -signal.SIGTERM
    process.signal(signal.SIGKILL)
    assert process.poll() == -signal.SIGTERM


def test_a_program_outlives_its_controller(remote: Machine) -> None:
    """A later controller finds it by the handle that was known before it was started."""
    stderr = f"{remote.root}/stderr"
    handles: list[str] = []

    def intend(handle: str) -> None:
        assert remote.executor.ask(lifetime_of, handle) is None
        handles.append(handle)

    first = remote.executor.start(
        ["sh", "-c", "echo one; until [ -e go ]; do sleep 0.1; done; sleep 1; echo two; exit 5"],
        cwd=remote.root,
        stderr=stderr,
        on_intent=intend,
    )
    (handle,) = handles
    assert first.handle == handle
    lifetime = remote.executor.ask(lifetime_of, handle)
    assert lifetime is not None
    assert (lifetime.began_ns > 0, lifetime.ended_ns) == (True, 0)
    found = remote.executor.find(handle)
    assert found.pid == first.pid
    found.skip(output_bytes=4)
    write(remote.executor, f"{remote.root}/go")
    while found.wait(1.0) is None:
        assert found.silent_s < 300
    assert (found.poll(), found.read_output(), found.lost) == (5, "two\n", "")
    ended = remote.executor.ask(lifetime_of, handle)
    assert ended is not None
    assert ended.ended_ns > ended.began_ns + 900_000_000


def test_a_program_that_was_never_started_is_lost(remote: Machine) -> None:
    """A handle without a program is no process that runs."""
    found = remote.executor.find(f"{remote.root}/.nothing")
    assert found.wait(10.0) == -signal.SIGKILL
    assert "never started" in found.lost


def test_a_work_folder_is_fetched_and_removed(remote: Machine, tmp_path: Path) -> None:
    """What a program left there arrives unchanged, and nothing stays."""
    arrived = tmp_path / "arrived"
    arrived.mkdir()
    path = remote.executor.work_folder(str(arrived), name=f"contract-{tmp_path.name}/run")
    write(remote.executor, f"{path}/")
    write(remote.executor, f"{path}/it's $HOME", "two\n")
    remote.executor.fetch_work_folder(path, str(arrived))
    assert (arrived / "it's $HOME").read_text(encoding="utf-8") == "two\n"
    remote.executor.remove_work_folder(path)
    assert stat_of(remote.executor, path) is None
