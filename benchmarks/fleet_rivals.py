"""What one job on every host costs the controller, beside what else starts fio on many hosts.

The same fio job runs on all hosts at a time and its JSON is brought back: by volbench (with its
guard, samples, logs and common start), by a loop over bare paramiko, by OpenSSH with a master
connection for each host, by Ansible, and by fio's own client. CPU is that of the controller.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measured import Figure
from tests.fleet.delay import long_line
from tests.fleet.hosts import Fleet

RUNTIME_S = 5
TRIES = 3
ROUND_TRIP_S = 0.3
MAX_SESSIONS = 8
"""Sessions of a host for each step of a campaign."""
MAX_WALL, MAX_CPU = 1.2, 1.0
"""Of one job on eight hosts, in multiples of Ansible's."""
MAX_DELAYS_S = {"two jobs on one host": 5, "one job on two hosts": 6}
"""More wall time at a round trip of 300 ms than without one."""

OPTIONS = {
    "rw": "randread",
    "bs": "4k",
    "size": "8m",
    "runtime": str(RUNTIME_S),
    "time_based": "1",
    "ioengine": "psync",
    "rate_iops": "200",
}
ARGUMENTS = " ".join(f"--{name}={value}" for name, value in OPTIONS.items())
FIO = (
    f"cd /var/tmp && fio --name=a {ARGUMENTS} --output-format=json --output=out.json; cat out.json"
)

PARAMIKO = """
import sys, paramiko
from concurrent.futures import ThreadPoolExecutor
key, known, command, *hosts = sys.argv[1:]
def work(host):
    client = paramiko.SSHClient()
    client.load_host_keys(known)
    client.connect(host, username="root", key_filename=key, look_for_keys=False, allow_agent=False)
    _, out, _ = client.exec_command(command)
    text = out.read()
    client.close()
    assert b'"jobs"' in text, text
with ThreadPoolExecutor(len(hosts)) as pool:
    list(pool.map(work, hosts))
"""


@dataclass(frozen=True)
class Spent:
    """What a way of running the job took: CPU of this machine's side, and wall time."""

    cpu_s: float
    wall_s: float


def spent(work: Callable[[], None]) -> Spent:
    """Return what some child processes took."""
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began_s
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu_s, wall_s)


def typical(work: Callable[[Path], None], folder: Path) -> Spent:
    """Return the median of what several tries took, each in an empty folder."""
    tries = []
    for number in range(TRIES):
        place = folder / str(number)
        place.mkdir(parents=True)
        tries.append(spent(partial(work, place / "work")))
    cpu_s, wall_s = ([getattr(each, name) for each in tries] for name in ("cpu_s", "wall_s"))
    return Spent(statistics.median(cpu_s), statistics.median(wall_s))


def run(*argv: str | Path, cwd: Path | None = None, **variables: str) -> None:
    """Run a program that must succeed."""
    done = subprocess.run(  # noqa: S603 - fixed by this file
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        # bytecode is written by the first try, as an installation does
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables},
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]}: {(done.stderr or done.stdout)[-2000:]}")


def by_volbench(hosts: Fleet, folder: Path, *, jobs: int, ports: list[int] | None = None) -> None:
    """Run the job once or twice by volbench."""
    folder.mkdir()
    job = ", ".join(f"{name}: {value}" for name, value in OPTIONS.items())
    lines = "".join(f"  j{number}: {{{job}}}\n" for number in range(jobs))
    (folder / "p.yaml").write_text(f"name: p\njobs:\n{lines}")
    entries = [
        f"  vm{host.number:02d}: "
        + (
            f"{{address: 127.0.0.1, port: {ports[at]}}}"
            if ports
            else f"{{address: {host.address}}}"
        )
        for at, host in enumerate(hosts.hosts)
    ]
    common = f"defaults: {{user: root, key: {hosts.key}, volumes: {{data: /var/tmp}}}}"
    (folder / "fleet.yaml").write_text("\n".join([common, "hosts:", *entries]) + "\n")
    known = folder / "known" if ports else hosts.known_hosts
    options = ["--inventory", "fleet.yaml", "--known-hosts", str(known), "--accept-new-host-keys"]
    volbench = [sys.executable, "-m", "volbench", "run", "p.yaml", *options, "--output", "c"]
    run(*volbench, cwd=folder)


def by_paramiko(hosts: Fleet) -> None:
    """Run the job by a thread and a connection for each host."""
    addresses = [host.address for host in hosts.hosts]
    run(sys.executable, "-c", PARAMIKO, hosts.key, hosts.known_hosts, FIO, *addresses)


def by_openssh(hosts: Fleet, folder: Path) -> None:
    """Run the job by ssh over a master connection for each host, and fetch by a second command."""
    folder.mkdir()
    common = ["-i", str(hosts.key), "-o", f"UserKnownHostsFile={hosts.known_hosts}"]

    def ssh(address: str, *more: str) -> subprocess.Popen[bytes]:
        argv = ["ssh", *common, "-S", str(folder / address), *more[:-1], f"root@{address}"]
        return subprocess.Popen(  # noqa: S603 - fixed by this file
            [*argv, more[-1]] if more[-1] else argv, stdout=subprocess.DEVNULL
        )

    addresses = [host.address for host in hosts.hosts]
    masters = [ssh(address, "-M", "-N", "") for address in addresses]
    while not all((folder / address).exists() for address in addresses):
        time.sleep(0.02)
    for command in (FIO, "cat /var/tmp/out.json"):
        for child in [ssh(address, command) for address in addresses]:
            if child.wait():
                raise RuntimeError(f"ssh: {command} failed")
    for master in masters:
        master.terminate()
        master.wait()


def ansible_in(folder: Path) -> Path:
    """Install Ansible in an environment to be thrown away, and return its program."""
    venv.create(folder, with_pip=True)
    run(folder / "bin/pip", "install", "--quiet", "ansible-core")
    return folder / "bin/ansible"


def by_ansible(hosts: Fleet, ansible: Path) -> None:
    """Run the job by the module `raw`, on all hosts at a time."""
    listed = ",".join(host.address for host in hosts.hosts) + ","
    common = f"-o UserKnownHostsFile={hosts.known_hosts}"
    forks = str(len(hosts.hosts))
    options = ["-u", "root", "--private-key", str(hosts.key), f"--ssh-common-args={common}"]
    run(ansible, "all", "-i", listed, *options, "-f", forks, "-m", "raw", "-a", FIO)


def by_fio_client(hosts: Fleet, folder: Path) -> None:
    """Run the job by fio's client; its servers run already."""
    folder.mkdir()
    lines = "\n".join(f"{name}={value}" for name, value in OPTIONS.items())
    (folder / "a.fio").write_text(f"[a]\ndirectory=/var/tmp\n{lines}\n")
    clients = [word for host in hosts.hosts for word in (f"--client={host.address}", "a.fio")]
    run("fio", "--output-format=json", "--output=out.json", *clients, cwd=folder)


@contextmanager
def fio_servers(hosts: Fleet) -> Iterator[None]:
    """Run fio's server on every host."""
    for host in hosts.hosts:
        host.run("sh", "-c", "cd /var/tmp && fio --server --daemonize=/tmp/fio.pid")
    try:
        yield
    finally:
        for host in hosts.hosts:
            host.run("sh", "-c", 'kill "$(cat /tmp/fio.pid)"')


def sessions(hosts: Fleet) -> int:
    """Return the sessions that all hosts have seen."""
    return sum(host.log.count("Starting session: ") for host in hosts.hosts)


def costs(hosts: Fleet, folder: Path) -> list[Figure]:
    """Return the cost of each way beside volbench's, as medians."""
    count = len(hosts.hosts)
    before = sessions(hosts)
    ours = typical(lambda place: by_volbench(hosts, place, jobs=1), folder / "ours")
    each = (sessions(hosts) - before) / count / TRIES
    ansible = ansible_in(folder / "ansible")
    with fio_servers(hosts):
        fio_client = typical(lambda place: by_fio_client(hosts, place), folder / "client")
    rivals = {
        "bare paramiko": typical(lambda _place: by_paramiko(hosts), folder / "paramiko"),
        "OpenSSH with masters": typical(lambda place: by_openssh(hosts, place), folder / "masters"),
        "Ansible (raw)": typical(lambda _place: by_ansible(hosts, ansible), folder / "raw"),
        "fio --client": fio_client,
    }
    ansible_took = rivals["Ansible (raw)"]
    wall, cpu = ours.wall_s / ansible_took.wall_s, ours.cpu_s / ansible_took.cpu_s
    job, peer = f"one {RUNTIME_S} s job on {count} hosts", "x Ansible"
    figures = [
        Figure(f"sessions a host and step, {count} hosts", each, "", MAX_SESSIONS),
        Figure(f"{job}: wall time", wall, peer, MAX_WALL, note=f"{ours.wall_s:.1f} s"),
        Figure(f"{job}: CPU of the controller", cpu, peer, MAX_CPU, note=f"{ours.cpu_s:.2f} s"),
    ]
    return figures + [
        Figure(
            f"{name}: CPU",
            took.cpu_s,
            "s",
            note=f"{took.wall_s:.1f} s; volbench: {ours.cpu_s / took.cpu_s:.2g} x the CPU,"
            f" {ours.wall_s - took.wall_s:+.1f} s",
        )
        for name, took in rivals.items()
    ]


def delay(hosts: Fleet, folder: Path) -> list[Figure]:
    """Return how much longer a campaign takes at a long round trip."""
    return [
        _delay(hosts, folder / "one", count=1, jobs=2, name="two jobs on one host"),
        _delay(hosts, folder / "two", count=2, jobs=1, name="one job on two hosts"),
    ]


def _delay(hosts: Fleet, folder: Path, *, count: int, jobs: int, name: str) -> Figure:
    few = Fleet(hosts.hosts[:count], hosts.folder, hosts.key, hosts.user_ca, hosts.known_hosts)
    near = typical(lambda place: by_volbench(few, place, jobs=jobs), folder / "near")
    with ExitStack() as stack:
        lines = (long_line(host, round_trip_s=ROUND_TRIP_S) for host in few.hosts)
        ports = [stack.enter_context(line) for line in lines]
        far = typical(lambda place: by_volbench(few, place, jobs=jobs, ports=ports), folder / "far")
    return Figure(
        f"{name} at a round trip of 300 ms: more wall time",
        far.wall_s - near.wall_s,
        "s",
        MAX_DELAYS_S[name],
        note=f"{far.wall_s:.1f} s and {near.wall_s:.1f} s",
    )
