"""Random faults of networks and hosts during campaigns on a fleet: no run lost, doubled or left."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.delay import long_line
from tests.fleet.desk import JOBS, Desk, check_clean, fios
from tests.fleet.hosts import RealHost, fleet
from tests.waiting import PATIENCE_S

HOSTS = 3
_LONGEST_S = 12.0
"""About as long as a campaign takes."""
_RESUMES = 6
_HUNG_S = 300.0
_CLEAN_S = 15.0


@dataclass(frozen=True)
class Fault:
    """Something that happens to a host and is over after a while."""

    strike: Callable[[RealHost], object]  # begins it
    heal: Callable[[RealHost], object]  # ends it
    prepare: Callable[[RealHost], object] = str  # makes it possible


_FILLER = "/root/.volbench/filler"


def _small_disk(host: RealHost) -> None:
    host.run("mkdir", "-p", "/root/.volbench")
    host.run("mount", "-t", "tmpfs", "-o", "size=160m", "none", "/root/.volbench")


def _fill(host: RealHost) -> None:
    host.run("sh", "-c", f"dd if=/dev/zero of={_FILLER} bs=64k 2>/dev/null || true")


def _kill_fio(host: RealHost) -> None:
    host.run("sh", "-c", "pkill -9 -x fio || true")


FAULTS = {
    "link": Fault(lambda host: host.link(up=False), lambda host: host.link(up=True)),
    "sshd": Fault(RealHost.kill_sshd, RealHost.start_sshd),
    "hung": Fault(RealHost.freeze, lambda host: host.freeze(thaw=True)),
    "power": Fault(RealHost.power_off, RealHost.power_on),
    "fio": Fault(_kill_fio, lambda host: host.name),
    "full": Fault(_fill, lambda host: host.run("rm", "-f", _FILLER), prepare=_small_disk),
}


def fleet_kill(chance: random.Random, folder: Path) -> int:
    """Kill the controller of a fleet at a random instant, sometimes over a slow link."""
    with _desk(chance, folder) as desk:
        process = desk.run()
        kills = 0
        while kills < 1 or chance.random() < 0.3:
            _wait(chance, desk)
            process.kill()
            process.communicate(timeout=PATIENCE_S)
            kills += 1
            if process.returncode != -signal.SIGKILL:
                break
            process = desk.start("resume", desk.out) if _is_planned(desk) else desk.run()
        said, _ = process.communicate(timeout=_HUNG_S)
        assert "Traceback" not in said, said
        _settle(desk)
        _check(desk)
        repeated = sorted(path.parent.name for path in desk.out.glob("runs/*/attempts"))
        assert not repeated, f"repeated: {repeated}"
    return kills


def fleet_fault(chance: random.Random, folder: Path) -> int:
    """Let something happen to a host for a while, sometimes to the controller as well."""
    with _desk(chance, folder) as desk:
        name = chance.choice(sorted(FAULTS))
        fault, victim = FAULTS[name], chance.choice(desk.fleet.hosts)
        policy = chance.choice(("all", "best-effort", "quorum:2"))
        fault.prepare(victim)
        process = desk.run("--policy", f"{policy},5s")
        _wait(chance, desk)
        fault.strike(victim)
        try:
            time.sleep(chance.choice((0.0, chance.uniform(0, 3), chance.uniform(0, 20))))
            if chance.random() < 0.3:
                process.kill()
        finally:
            fault.heal(victim)
        said, _ = process.communicate(timeout=_HUNG_S)
        assert "Traceback" not in said, f"{name}: {said}"
        _settle(desk)
        try:
            # A fault before the plan leaves its host out, unless the policy needs all.
            _check(desk, clients=HOSTS - (policy != "all" and "note: left out: " in said))
        except AssertionError as error:
            error.add_note(f"{name} on {victim.name}, {policy}\n{said}")
            raise
    return 1


@contextmanager
def _desk(chance: random.Random, folder: Path) -> Iterator[Desk]:
    """Yield a prepared desk with hosts of its own; one of three has a slow link."""
    with ExitStack() as stack:
        hosts = stack.enter_context(fleet(HOSTS, folder / "f"))
        desk = Desk(folder, hosts)
        desk.prepare(runtime=chance.choice(("1s", "3s")))
        if chance.random() < 1 / 3:
            host, delay_s = chance.choice(hosts.hosts), chance.uniform(0.02, 0.4)
            port = stack.enter_context(long_line(host, round_trip_s=delay_s))
            path = folder / "fleet.yaml"
            text = path.read_text()
            here = f"address: 127.0.0.1, port: {port}"
            path.write_text(text.replace(f"address: {host.address}", here))
            with hosts.known_hosts.open("a") as known:
                known.write(f"[127.0.0.1]:{port} {host.public_key}\n")
        yield desk


def _wait(chance: random.Random, desk: Desk) -> None:
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0, _LONGEST_S))
        return
    lines, end = chance.randint(1, 40), time.monotonic() + _LONGEST_S
    while len(desk.journal()) < lines and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.5))


def _is_planned(desk: Desk) -> bool:
    return (desk.out / "campaign.json").exists()


def _settle(desk: Desk) -> None:
    """Resume until every run is finished; a campaign that was never planned is run."""
    said = ""
    for _ in range(_RESUMES):
        if _is_planned(desk) and set(desk.states()) == {"finished"}:
            return
        process = (
            desk.start("resume", desk.out, "--retry-failed") if _is_planned(desk) else desk.run()
        )
        said, _ = process.communicate(timeout=_HUNG_S)
        assert "Traceback" not in said, said
    assert _is_planned(desk), said
    assert set(desk.states()) == {"finished"}, f"{desk.states()}\n{said}"


def _check(desk: Desk, *, clients: int = HOSTS) -> None:
    runs = Counter(
        entry["run"]
        for entry in map(json.loads, (desk.out / "journal.jsonl").read_text().splitlines())
        if entry.get("state") == "finished"
    )
    assert sorted(runs.values()) == [1] * clients * len(JOBS), runs

    end = time.monotonic() + _CLEAN_S
    while True:
        try:
            check_clean(desk.fleet.hosts)
        except AssertionError as error:
            if time.monotonic() > end:
                error.add_note("\n".join(map(_left_on, desk.fleet.hosts)))
                raise
            time.sleep(0.5)
        else:
            return


def _left_on(host: RealHost) -> str:
    files = host.run("sh", "-c", "find /root/.volbench /var/tmp -type f 2>/dev/null || true")
    return f"{host.name}: {files} {fios(host)}"
