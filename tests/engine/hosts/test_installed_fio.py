"""fio where it is missing: only when asked, by the package manager that is there."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor
from volbench.engine.hosts.host_facts import (
    find_fio,
    install_missing_fio,
    require_fio,
)
from volbench.errors import FioError
from volbench.execute.agent import facts
from volbench.execute.agent.files import FileStat
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Completed

Answer = Callable[[tuple[str, ...]], Completed]


def says(text: str, status: int = 0, stderr: str = "") -> Answer:
    """Return an answer."""
    return lambda argv: Completed(argv, status, text, stderr)


def a_machine(*managers: str, uid: str = "0", works: bool = True) -> FakeExecutor:
    """Return a machine without fio, on which its package manager brings one."""
    user = FileStat("directory", (0, 21), (0, 0), 1, 0, owner=int(uid))
    machine = FakeExecutor(host="vm1", stats={"/proc/self": user})

    def install(argv: tuple[str, ...]) -> Completed:
        if not works:
            return Completed(argv, 100, "", "reading lists\nE: no such package\n")
        machine.answers["fio"] = says("fio-3.33\n")
        return Completed(argv, 0, "", "")

    for name in (*managers, "env", "sudo"):
        machine.answers[name] = install
    return machine


def installed(machine: FakeExecutor) -> str:
    """Return the path of fio, which is installed if it is missing."""
    return find_fio(machine, install_missing_fio(machine, machine.survey()[0])).path


@pytest.mark.parametrize(
    ("manager", "uid", "requested"),
    [
        ("apt-get", "0", "env DEBIAN_FRONTEND=noninteractive apt-get -qy install fio"),
        ("apt-get", "1000", "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -qy install fio"),
        ("dnf", "0", "dnf -qy install fio"),
        ("apk", "1000", "sudo -n apk add fio"),
    ],
)
def test_the_installed_package_manager_is_used(manager: str, uid: str, requested: str) -> None:
    """It is started once, by sudo where the user is not root."""
    machine = a_machine(manager, uid=uid)
    assert installed(machine) == "/usr/bin/fio"
    assert [" ".join(argv) for argv in machine.ran if "fio" in argv[1:]] == [requested]


def test_a_fio_that_hangs_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is asked for in a bounded time, and the error says that it did not come."""
    monkeypatch.setattr(facts, "ANSWER_S", 0.2)
    fio = tmp_path / "fio"
    fio.write_text('#!/bin/sh\necho begin >>"$0.log"\nexec sleep 60\n')
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(FioError, match=r"fio does not print its version: no end in 0\.2 s"):
        require_fio(LocalExecutor())
    assert (tmp_path / "fio.log").read_text() == "begin\n"


def test_nothing_is_installed_without_consent() -> None:
    """Without leave a missing fio is an error, as ever."""
    machine = a_machine("apt-get")
    with pytest.raises(FioError, match="not installed on vm1"):
        require_fio(machine)
    assert machine.ran == []


def test_a_fio_that_is_there_stays() -> None:
    """Nothing is upgraded."""
    machine = a_machine("apt-get")
    machine.answers["fio"] = says("fio-3.33\n")
    installed(machine)
    assert not [argv for argv in machine.ran if "install" in argv]


def test_a_failed_installation_quotes_the_package_manager() -> None:
    """The last line of the package manager, or that there is none."""
    with pytest.raises(FioError, match="apt-get: E: no such package"):
        installed(a_machine("apt-get", works=False))
    with pytest.raises(FioError, match="no supported package manager"):
        installed(a_machine())
