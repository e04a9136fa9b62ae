"""An ordinary user of the machine who interferes with every write of root that is within reach."""

import os
import random
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from unittest import mock

from tests.command_line import call, start
from tests.waiting import PATIENCE_S

_USER = 4711
"""No account has this id."""

MARK = "only root may read this: 5a1f"
"""In every file that only root may read."""
STATUSES = {0, 2, 3, 7, 9, 10}
"""Ends in order: success, input, refusal, output, campaign, findings."""

_PROFILE = """\
name: p
sample: 0
jobs:
  a: {rw: write, bs: 4k, size: 256k, ioengine: psync}
  b: {rw: read, bs: 4k, size: 256k, ioengine: psync}
"""

# What the neighbour does until it is ended: each act on whatever root has made so far.
NEIGHBOUR = """\
import os, random, sys, time
seed, targets, places = sys.argv[1], sys.argv[2].split(":"), sys.argv[3].split(":")
names = sys.argv[4].split(",")
chance = random.Random(seed)
def names_in(place):
    try:
        return os.listdir(place)
    except OSError:
        return []
def plant(path):
    kind = chance.choice(["link", "link", "link", "folder", "pipe", "file", "hard"])
    if kind == "link":
        os.symlink(chance.choice(targets), path)
    elif kind == "hard":
        os.link(chance.choice(targets), path)
    elif kind == "folder":
        os.mkdir(path)
        os.chmod(path, 0o777)
    elif kind == "pipe":
        os.mkfifo(path, 0o666)
    else:
        open(path, "w").close()
        os.chmod(path, 0o666)
def disturb(place):
    found = [] if place == "/run/lock" else names_in(place)
    name = chance.choice(found + names)
    path = os.path.join(place, name)
    act = chance.choice(["plant", "replace", "move", "inside", "temporary"])
    if act == "plant":
        plant(path)
    elif act == "replace":
        if place == "/run/lock":
            os.unlink(path)
        else:
            os.rename(path, path + ".gone%d" % chance.randrange(9))
        plant(path)
    elif act == "move":
        os.rename(path, os.path.join(place, chance.choice(names)))
    elif act == "inside":
        plant(os.path.join(path, chance.choice(names + names_in(path))))
    else:
        hidden = ".%s.%d.volbench.tmp" % (name, os.getppid())
        plant(os.path.join("/nowhere" if place == "/run/lock" else place, hidden))
def below(place):
    found = names_in(place) if place != "/run/lock" and chance.random() < 0.5 else []
    inner = os.path.join(place, chance.choice(found)) if found else ""
    return below(inner) if os.path.isdir(inner) and not os.path.islink(inner) else place
end = time.monotonic() + 300
while time.monotonic() < end:
    for place in places:
        try:
            disturb(below(place))
        except OSError:
            pass
    time.sleep(chance.choice([0, 0, 0.001, 0.01]))
"""

# What the neighbour does with the port of live metrics.
_VISITOR = """\
import random, socket, sys, time
chance, port = random.Random(sys.argv[1]), int(sys.argv[2])
requests = [b"", b"GET /metrics HTTP/1.1\\r\\n", b"\\0" * 70000, b"GET " + b"/" * 70000]
requests += [b"POST / HTTP/9\\r\\n\\r\\n", b"GET /metrics HTTP/1.0\\r\\n\\r\\n"]
kept = []
end = time.monotonic() + 300
if chance.random() < 0.1:
    kept.append(socket.create_server(("127.0.0.1", port)))
while time.monotonic() < end:
    try:
        visit = socket.create_connection(("127.0.0.1", port), 1)
        visit.sendall(chance.choice(requests))
        kept.append(visit)
    except OSError:
        time.sleep(0.01)
    del kept[1:-200]
"""


def neighbour_case(chance: random.Random, folder: Path) -> int:
    """Let root plan, run, resume and report beside a neighbour; nothing of root may change."""
    folder.chmod(0o711)
    root = _Root(folder, chance)
    shared = folder / "shared"
    shared.mkdir()
    is_sticky = chance.random() < 0.5
    if is_sticky:
        shared.chmod(0o1777)
    else:  # the folder is the neighbour's own: whatever root makes there may be moved away
        os.chown(shared, _USER, _USER)
    out = chance.choice([shared / "c", shared / "deep/c", folder / "private/c"])
    target = chance.choice([root.own, shared, shared / "file", *root.devices])
    names = ["c", "deep", "file", "x.svg", "page", "runs", "report", "status.json", "tables"]
    names += ["journal.jsonl", "volbench-results"]
    port, checks = chance.randrange(20_000, 30_000), 0
    with closing(root), _neighbour(chance, root, [str(shared), str(out)], names, port):
        for arguments in _verbs(chance, folder, out, target, shared, port):
            temporary = str(shared if is_sticky and chance.random() < 0.5 else folder)
            with (
                mock.patch.dict(os.environ, TMPDIR=temporary),
                mock.patch.object(tempfile, "tempdir", temporary),
            ):
                done = call(*arguments, cwd=chance.choice([shared, folder]))
            printed = f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
            assert "Traceback" not in printed, printed
            assert done.returncode in STATUSES, printed
            assert MARK not in printed, printed
            root.secrets.check([shared], is_foreign=is_readable)
            checks += 1
        if chance.random() < 0.3:
            _serve_volume(chance.choice([shared / "file", shared / "deep/lab", shared]))
            root.secrets.check([shared], is_foreign=is_readable)
    return checks


def _serve_volume(output: Path) -> None:
    process = start("lab", "up", "clean", "--output", output, stderr=subprocess.STDOUT)
    try:
        process.wait(3.0)
    except subprocess.TimeoutExpired:
        process.terminate()  # a background job of a shell ignores SIGINT
    printed, _ = process.communicate(timeout=60)
    assert "Traceback" not in printed, printed
    assert process.returncode in {0, 1, 2, 3, 7, -signal.SIGTERM}, printed
    assert MARK not in printed, printed


def _verbs(
    chance: random.Random, folder: Path, out: Path, target: Path, shared: Path, port: int
) -> Iterator[list[str | Path]]:
    profile = folder / "p.yaml"
    profile.write_text(_PROFILE)
    consent: list[str | Path] = ["--allow-destroy", target] if chance.random() < 0.9 else []
    yield ["run", profile, "--on", target, *consent, "--output", out, "--metrics", str(port)]
    rest: list[list[str | Path]] = [
        ["resume", out],
        ["status", "--clean", out],
        ["show", out, "--output", shared / "file"],
        ["plot", "iops", out, "--output", shared / "x.svg"],
        ["report", out],
        ["report", out, "--output", shared / "page"],
        ["check", out],
        ["check", "--files", out],
    ]
    yield from chance.sample(rest, k=4)


class Secrets:
    """Files of root that nobody else may change or read."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.paths = [folder / f"secret{number}" for number in range(3)]
        folder.mkdir(mode=0o700)
        for path in self.paths:
            path.write_text(f"{MARK} {chance.random()}\n" * 100)
            path.chmod(0o600)
        self._before = self._state()

    def _state(self) -> list[object]:
        found = [(path, path.read_bytes(), path.stat()) for path in self.paths]
        return [(p, text, s.st_mode, s.st_uid, s.st_mtime_ns, s.st_ino) for p, text, s in found]

    def check(self, places: list[Path], *, is_foreign: Callable[[Path], bool]) -> None:
        """Check that nothing changed, and that no file that others can read holds a copy."""
        assert self._state() == self._before, "a file of root was changed"
        for folder, _, names in (found for place in places for found in os.walk(place)):
            for path in (Path(folder, name) for name in names):
                with suppress(OSError):  # the neighbour has moved it away
                    text = path.read_bytes() if is_foreign(path) else b""
                    assert MARK.encode() not in text, f"{path} holds what only root may read"


class _Root:
    """Files and devices of root."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.own = folder / "own"
        self.secrets = Secrets(self.own, chance)
        self.devices: list[Path] = []
        if chance.random() < 0.4:
            image = folder / "image"
            with image.open("wb") as file:
                file.truncate(4 * 1024**2)
            made = subprocess.run(
                ["losetup", "-f", "--show", image], check=True, capture_output=True, text=True
            )
            self.devices.append(Path(made.stdout.strip()))

    @property
    def lock_names(self) -> list[str]:
        """Names of the locks of its devices."""
        numbers = (path.stat().st_rdev for path in self.devices)
        return [f"volbench-{os.major(number)}:{os.minor(number)}" for number in numbers]

    def close(self) -> None:
        """Detach the devices, and remove what was planted for them."""
        for name in self.lock_names:
            path = Path("/run/lock", name)
            if path.is_dir() and not path.is_symlink():
                subprocess.run(["rm", "-rf", path], check=True)
            path.unlink(missing_ok=True)
        for device in self.devices:
            subprocess.run(["losetup", "-d", device], check=True)


def is_readable(path: Path, user: int = _USER) -> bool:
    """Return whether a user can read a file, which is not just another name of one of root."""
    found = path.lstat()
    is_open = found.st_uid == user or bool(found.st_mode & 0o004)
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and is_open


@contextmanager
def _neighbour(
    chance: random.Random, root: _Root, places: list[str], names: list[str], port: int
) -> Iterator[None]:
    """Let the neighbour act; in /run/lock only under the names of the case's own devices.

    The port of live metrics is taken before, or visited with requests that are none.
    """
    groups = [(places, names)]
    if root.lock_names:
        groups.append((["/run/lock"], root.lock_names))
    targets = ":".join(map(str, root.secrets.paths))
    programs = [
        [NEIGHBOUR, str(chance.random()), targets, ":".join(group[0]), ",".join(group[1])]
        for group in groups
    ]
    programs.append([_VISITOR, str(chance.random()), str(port)])
    processes = [
        subprocess.Popen(
            ["/usr/bin/python3", "-I", "-S", "-c", *program],
            user=_USER,
            group=_USER,
            extra_groups=[],
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
        for program in programs
    ]
    try:
        yield
        assert [process.poll() for process in processes] == [None] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.wait(PATIENCE_S)
