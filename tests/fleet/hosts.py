"""Real hosts for tests: machines with an sshd each.

A host is a set of namespaces (network, mounts, names, processes) with its own address, host key,
home, /tmp and boot id, and a real sshd. A switch, which is a namespace with a bridge in it, joins
the hosts to each other and to us. Only one end of a cable (a veth) is in our own namespace.

Nothing outlives the tests. The first process of a namespace reads from a pipe that we hold. When it
is closed, by us or by our death, that process ends, the kernel kills all others in the namespace,
and takes the network down.
"""

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fleet import texts
from tests.waiting import PATIENCE_S, killed_in_time

_TRIES = 50


def call(*argv: str, text: str = "") -> str:
    """Run a program that must succeed and return what it printed, stripped."""
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, input=text, timeout=PATIENCE_S
    )
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr or done.stdout}"
    return done.stdout.strip()


def make_key(path: Path, *options: str) -> Path:
    """Make a pair of keys without a passphrase and return the path of the private one."""
    path.unlink(missing_ok=True)
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path), *options)
    return path


class Namespace:
    """Namespaces with a first process that ends when we let go of it.

    Args:
        script: what the first process does; it prints ``waiting``, reads a line, and prints ``up``.
        kinds: options of unshare.
        variables: what the script finds in its environment.
    """

    def __init__(self, script: str, kinds: Sequence[str], variables: Mapping[str, str]) -> None:
        command = ["unshare", *kinds, "--fork", "--kill-child=KILL", "sh", "-c", script]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        self._expect("waiting")

    @property
    def pid(self) -> int:
        """A process in its network namespace."""
        return self._process.pid

    @property
    def init(self) -> int:
        """Its first process, as we see it."""
        return _children(self._process.pid)[0]

    def go(self) -> None:
        """Let the script go on, and wait until it is up."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        self._expect("up")

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        with killed_in_time(self._process):
            said = self._process.stdout.readline().strip()
        assert said == word, f"a namespace said {said!r}, not {word!r}"

    def inside(self, *argv: str, text: str = "") -> str:
        """Run a program that must succeed in its network."""
        return call("nsenter", f"--net=/proc/{self.pid}/ns/net", *argv, text=text)

    def end(self) -> None:
        """Kill everything in it at once."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._process.kill()
        self._process.wait(PATIENCE_S)


@dataclass
class RealHost:
    """A host that is reached by SSH, and what may happen to it."""

    number: int  # from 0; its port on the switch
    name: str  # its host name
    address: str  # its IP address; sshd listens on port 22
    folder: Path  # its files, as we see them: ``run`` is its /run, ``root`` its /root
    switch: Namespace
    boots: int = 0
    _space: Namespace | None = field(default=None, repr=False)

    @property
    def space(self) -> Namespace:
        """Its namespaces; it must be on."""
        assert self._space is not None, f"{self.name} is off"
        return self._space

    @property
    def tmp(self) -> Path:
        """Its /tmp, as we see it."""
        return self.folder / "run" / "tmp"

    @property
    def log(self) -> str:
        """What its sshd wrote."""
        return (self.folder / "run/fleet/log").read_text(encoding="utf-8")

    @property
    def public_key(self) -> str:
        """Type and key, as in a line of known_hosts."""
        text = (self.folder / "run/fleet/host_key.pub").read_text(encoding="utf-8")
        return " ".join(text.split()[:2])

    def power_on(self) -> None:
        """Start it, with a new boot id, and wait until sshd answers."""
        assert self._space is None
        self.boots += 1
        boot_id = Path("/proc/sys/kernel/random/uuid").read_text(encoding="utf-8")
        (self.folder / "boot_id").write_text(boot_id, encoding="utf-8")
        variables = {"NAME": self.name, "ADDRESS": f"{self.address}/24", "FOLDER": str(self.folder)}
        kinds = ["--net", "--mount", "--uts", "--ipc", "--pid", "--mount-proc"]
        space = self._space = Namespace(texts.INIT, kinds, variables)
        port = f"p{self.number}.{self.boots}"
        self.switch.inside(
            "ip",
            "-batch",
            "-",
            text=f"link add {port} type veth peer name eth0 "
            f"address 02:76:62:00:00:{self.number:02x} netns {space.pid}\n"
            f"link set {port} master bridge up\n",
        )
        space.go()
        wait_for_sshd(self.address)

    def power_off(self) -> None:
        """Take its power: nothing says goodbye."""
        if self._space is not None:
            self._space.end()
            self._space = None

    def link(self, *, up: bool) -> None:
        """Plug its cable in, or pull it out."""
        port = f"p{self.number}.{self.boots}"
        self.switch.inside("ip", "link", "set", port, "up" if up else "down")

    def freeze(self, *, thaw: bool = False) -> None:
        """Stop every process of it, or let them go on; its kernel still answers."""
        number = signal.SIGCONT if thaw else signal.SIGSTOP
        until = time.monotonic() + PATIENCE_S
        # Children of what ends in between are moved by the kernel, so look again.
        while missed := [pid for pid in _below(self.space.init) if _is_stopped(pid) == thaw]:
            assert time.monotonic() < until, f"{self.name} cannot be frozen or thawed"
            for pid in missed:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.01)

    def kill_sshd(self) -> None:
        """Kill its sshd and every session, and wait until its port is free; others go on."""
        until = time.monotonic() + PATIENCE_S
        while sshds := [pid for pid in _below(self.space.init) if _is_sshd(pid)]:
            assert time.monotonic() < until, f"sshd of {self.name} does not die"
            for pid in sshds:  # the kernel moves children of the dead, so look again
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def start_sshd(self) -> None:
        """Start sshd again after it was killed."""
        config = f"{texts.PLACE}/sshd_config"
        command = f"{texts.SSHD} -D -e -f {config} </dev/null >/dev/null 2>>{texts.PLACE}/log &"
        self.run("sh", "-c", command)
        wait_for_sshd(self.address)

    def new_host_key(self) -> None:
        """Give it another host key, as if it had been set up anew."""
        self.kill_sshd()
        make_key(self.folder / "run/fleet/host_key")
        self.start_sshd()

    def run(self, *argv: str) -> str:
        """Run a program on it as root, without SSH, that must succeed."""
        return call("nsenter", "-t", str(self.space.init), "-m", "-u", "-i", "-n", "-p", *argv)


@dataclass(frozen=True)
class Fleet:
    """Hosts, and the keys that open them."""

    hosts: tuple[RealHost, ...]
    folder: Path
    key: Path  # private key of the only one who may log in, as any user
    user_ca: Path  # private key whose certificates sshd trusts
    known_hosts: Path  # the keys of all hosts as they were at first

    def __getitem__(self, number: int) -> RealHost:
        """Return a host by its number."""
        return self.hosts[number]


@contextmanager
def fleet(
    count: int,
    folder: Path,
    *,
    max_startups: str = "200",
    busybox: bool = False,
    devices: Sequence[Mapping[str, str]] = (),
) -> Iterator[Fleet]:
    """Hand out running hosts, and take everything down in the end.

    Args:
        count: up to 250.
        folder: for their files; any path that is not below /run.
        max_startups: of every sshd, such as ``10:30:100``.
        busybox: whether its programs are busybox, fio, Python and sshd, as on Alpine.
        devices: for each host, names in its /dev and the block devices behind them; a host
            without any sees our own /dev.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key, user_ca = make_key(folder / "key"), make_key(folder / "user_ca")
    with ExitStack() as stack:
        switch, network = _switch(stack)
        hosts = []
        for number in range(count):
            home = folder / f"h{number}"
            disks = devices[number] if number < len(devices) else {}
            _furnish(home, key=key, user_ca=user_ca, max_startups=max_startups, disks=disks)
            if busybox:
                _only_busybox(home)
            host = RealHost(number, f"h{number}", f"{network}.{number + 1}", home, switch)
            stack.callback(host.power_off)
            host.power_on()
            hosts.append(host)
        known = folder / "known_hosts"
        lines = "".join(f"{host.address} {host.public_key}\n" for host in hosts)
        known.write_text(lines, encoding="utf-8")
        yield Fleet(tuple(hosts), folder, key, user_ca, known)


def _is_sshd(pid: int) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        name, state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)
        return name.endswith("(sshd") and state.split()[0] not in {"Z", "X"}
    return False


def wait_for_sshd(address: str) -> None:
    """Wait until an sshd greets."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection((address, 22), 1) as wire:
            wire.settimeout(2)
            if wire.recv(4) == b"SSH-":
                return
        time.sleep(0.01)
    raise AssertionError(f"no sshd answers at {address}")


def _switch(stack: ExitStack) -> tuple[Namespace, str]:
    """Start a switch that we are joined to; return it and three parts of its addresses."""
    switch = Namespace(texts.SWITCH, ["--net", "--pid"], {})
    stack.callback(switch.end)
    cable = f"vb{os.getpid() % 100000}{secrets.token_hex(3)}"
    call("ip", "link", "add", cable, "type", "veth", "peer", "uplink", "netns", str(switch.pid))
    switch.go()
    return switch, _address(cable)


def _address(cable: str) -> str:
    """Give our end of the cable an address in a network that nobody uses (198.18/15: RFC 2544)."""
    choice = random.SystemRandom()
    for _ in range(_TRIES):
        network = f"198.{choice.choice((18, 19))}.{choice.randrange(256)}"
        if network not in call("ip", "-4", "address"):
            call("ip", "address", "add", f"{network}.254/24", "dev", cable)
            call("ip", "link", "set", cable, "up")
            return network
    raise AssertionError("no network is free")


def _furnish(
    home: Path, *, key: Path, user_ca: Path, max_startups: str, disks: Mapping[str, str]
) -> None:
    for name in ("etc", "root", "vartmp", "run/fleet", "run/sshd", "run/tmp"):
        (home / name).mkdir(parents=True)
    (home / "run/tmp").chmod(0o1777)
    for user, number in ((texts.USER, 4711), (texts.NOBODY, 4712)):
        (home / "run/home" / user).mkdir(parents=True)
        os.chown(home / "run/home" / user, number, 4711)
    place = home / "run/fleet"
    (place / "ash").symlink_to("/usr/bin/busybox")
    make_key(place / "host_key")
    for name, source in (("authorized_keys", key), ("user_ca", user_ca)):
        (place / name).write_bytes(Path(f"{source}.pub").read_bytes())
    config = texts.SSHD_CONFIG.format(max_startups=max_startups)
    written = {
        place / "sshd_config": config,
        place / "log": "",
        home / "etc/passwd": texts.PASSWD,
        home / "etc/shadow": texts.SHADOW,
        home / "etc/group": texts.GROUP,
        home / "etc/sudoers": texts.SUDOERS,
        home / "etc/hosts": f"127.0.0.1 localhost {home.name}\n",
    }
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    (home / "etc/sudoers").chmod(0o440)
    if disks:
        (home / "dev").mkdir()
        lines = "".join(f"{name} {device}\n" for name, device in disks.items())
        (home / "devices").write_text(lines, encoding="utf-8")


def _only_busybox(home: Path) -> None:
    for program in ("bin/busybox", "bin/fio", "bin/python3", "sbin/sshd"):
        (home / program).parent.mkdir(exist_ok=True)
        shutil.copy(f"/usr/{program}", home / program)
    for applet in call("busybox", "--list").split():
        if applet != "busybox":
            (home / "bin" / applet).symlink_to("busybox")


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text(encoding="utf-8").split())
    return found


def _is_stopped(pid: int) -> bool | None:
    """Return whether a process is stopped; None if it is gone or a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None
    return None if state in "ZX" else state == "T"


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)
