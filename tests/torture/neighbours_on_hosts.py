"""An ordinary user of a measured host who interferes with root's agent and with sudo there."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fleet import texts
from tests.fleet.desk import Desk
from tests.fleet.hosts import RealHost, fleet
from tests.torture.neighbours import MARK, NEIGHBOUR, STATUSES, Secrets, is_readable
from tests.waiting import PATIENCE_S

_NEIGHBOUR_ID = 4799
"""No account of the host has this id, and none is in its group."""

_HUNG_S = 300.0
_NAMES = (
    "job.fio fio.json stderr .stderr gate start state end out samples news door ready go k check.0 "
    "volbench-disk-0:1.k .volbench"
)
_WORK = ("", "/tmp/work", "/tmp/shared", "/tmp/shared/work", "/tmp/shared/deep/work")


def host_neighbour_case(chance: random.Random, folder: Path) -> int:
    """Let root's agent work on a host beside a neighbour; nothing of root may change there."""
    folder.chmod(0o711)
    with fleet(1, folder / "f") as hosts:
        (host,) = hosts.hosts
        desk = Desk(folder, hosts)
        _prepare(chance, desk)
        secrets = Secrets(host.folder / "root/own", chance)
        checks = 0
        with _neighbour(chance, host, secrets):
            for arguments in _verbs(chance, desk):
                process = desk.start(*arguments)
                printed, _ = process.communicate(timeout=_HUNG_S)
                said = f"{arguments}: {process.returncode}\n{printed}"
                assert "Traceback" not in printed, said
                assert process.returncode in STATUSES - {2} | {4}, said
                assert MARK not in printed, said
                secrets.check([host.folder / "run", desk.out], is_foreign=_is_readable)
                checks += 1
    return checks


def _prepare(chance: random.Random, desk: Desk) -> None:
    user = chance.choice(["root", texts.USER, texts.USER])
    work = chance.choice(_WORK)
    more = ["sudo: yes"] * (user != "root") + [f"workdir: {work}"] * bool(work)
    desk.prepare(runtime="1s", user=user, defaults=", ".join(more), jobs=["a"])
    inventory = desk.folder / "fleet.yaml"
    volume = chance.choice(["/var/tmp"] * 4 + ["/tmp", "/tmp/shared", "/tmp/shared/file"])
    inventory.write_text(inventory.read_text().replace("data: /var/tmp", f"data: {volume}"))
    shared = desk.fleet[0].tmp / "shared"
    shared.mkdir()
    os.chown(shared, chance.choice([_NEIGHBOUR_ID, texts.USER_ID, 0]), _NEIGHBOUR_ID)
    shared.chmod(chance.choice([0o755, 0o775, 0o777, 0o1777]))


def _verbs(chance: random.Random, desk: Desk) -> Iterator[tuple[str, *tuple[str | Path, ...]]]:
    inventory = ("--inventory", "fleet.yaml")
    if chance.random() < 0.3:
        yield "hosts", *inventory
    yield "run", "p.yaml", *inventory, "--output", desk.out
    if desk.out.exists():
        if chance.random() < 0.5:
            yield "resume", desk.out
        else:
            yield "status", "--clean", desk.out


def _is_readable(path: Path) -> bool:
    return is_readable(path, _NEIGHBOUR_ID)


@contextmanager
def _neighbour(chance: random.Random, host: RealHost, secrets: Secrets) -> Iterator[None]:
    places = [
        "/tmp",
        "/tmp/shared",
        "/tmp/work",
        "/tmp/shared/work",
        "/var/tmp",
        f"/run/home/{texts.USER}",
    ]
    targets = ":".join(f"/root/own/{path.name}" for path in secrets.paths)
    process = subprocess.Popen(
        [
            *("nsenter", "-t", str(host.space.init), "-m", "-u", "-i", "-n", "-p"),
            *("setpriv", f"--reuid={_NEIGHBOUR_ID}", f"--regid={_NEIGHBOUR_ID}", "--clear-groups"),
            *("/usr/bin/python3", "-I", "-S", "-c", NEIGHBOUR, str(chance.random()), targets),
            *(":".join(places), _NAMES.replace(" ", ",")),
        ],
        cwd="/",
        stdin=subprocess.DEVNULL,
    )
    try:
        yield
        assert process.poll() is None, "the neighbour has ended"
    finally:
        process.kill()  # what it started ends with its host
        process.wait(PATIENCE_S)
