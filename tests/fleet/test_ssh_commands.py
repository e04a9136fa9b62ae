"""Programs on real hosts: their output, their input, their deadlines, and who may start them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fleet import texts
from tests.fleet.hosts import Fleet
from tests.fleet.ways import executor_for
from tests.waiting import until
from volbench.errors import AuthError, DeadlineError, TransportError
from volbench.execute.agent_executor import AgentExecutor

pytestmark = pytest.mark.root

AS_ROOT = ["sh", "-c", "id -un", "/dev/null"]
"""Program that runs as root where sudo is set, because of the device."""


@pytest.fixture
def machine(hosts: Fleet) -> Iterator[AgentExecutor]:
    """Hand out a machine that nobody else uses meanwhile."""
    with executor_for(hosts, hosts[0]) as executor:
        yield executor


def test_many_commands_share_a_connection(hosts: Fleet, machine: AgentExecutor) -> None:
    """More commands at once than sshd allows on one connection all get their turn."""
    with ThreadPoolExecutor(24) as workers:
        answers = list(
            workers.map(lambda n: machine.run(["sh", "-c", f"sleep 0.1; echo {n}"]), range(24))
        )
    assert [answer.stdout for answer in answers] == [f"{n}\n" for n in range(24)]
    assert "no more sessions" not in hosts[0].log


def test_output_of_a_noisy_login_shell_is_skipped(hosts: Fleet) -> None:
    """What start-up files print is no part of a program's output."""
    with executor_for(hosts, hosts[1], user=texts.USER) as executor:
        home = hosts[1].folder / "run/home" / texts.USER
        (home / ".bashrc").write_text("echo welcome; echo beware >&2\n", encoding="utf-8")
        passwd = hosts[1].folder / "etc/passwd"
        before = passwd.read_text(encoding="utf-8")
        try:
            noisy = before.replace(f"{texts.USER}:/bin/sh", f"{texts.USER}:/bin/bash")
            passwd.write_text(noisy, encoding="utf-8")
            done = executor.run(["sh", "-c", "echo out; echo err >&2"])
            assert (done.stdout, done.stderr) == ("out\n", "err\n")
            assert "welcome" in hosts[1].run("su", texts.USER, "-c", "bash -i -c true")
        finally:
            passwd.write_text(before, encoding="utf-8")
            (home / ".bashrc").unlink()


def test_an_account_without_a_shell_has_an_error_of_its_own(hosts: Fleet) -> None:
    """Where the login shell runs nothing, its own words are passed on."""
    passwd = hosts[1].folder / "etc/passwd"
    before = passwd.read_text(encoding="utf-8")
    closed = before.replace(f"{texts.NOBODY}:/bin/sh", f"{texts.NOBODY}:/usr/sbin/nologin")
    passwd.write_text(closed, encoding="utf-8")
    try:
        with (
            executor_for(hosts, hosts[1], user=texts.NOBODY) as executor,
            pytest.raises(TransportError, match="not available") as caught,
        ):
            executor.run(["true"])
        assert not caught.value.transient
    finally:
        passwd.write_text(before, encoding="utf-8")


def test_sudo_is_used_where_it_is_needed(hosts: Fleet) -> None:
    """With `sudo` set, what touches devices runs as root, and nothing else does."""
    with executor_for(hosts, hosts[1], user=texts.USER, sudo=True) as executor:
        assert executor.run(["id", "-un"]).stdout == f"{texts.USER}\n"
        reported = executor.run(["sh", "-c", "id -un; echo $1", "sh", "/dev/null"])
        assert reported.stdout == "root\n/dev/null\n"
        with pytest.raises(TransportError, match="no-such cannot be started"):
            executor.run(["no-such", "/dev/null"])


def test_a_program_under_sudo_is_ended_too(hosts: Fleet) -> None:
    """A program that runs as root does not outlive its deadline."""
    with executor_for(hosts, hosts[1], user=texts.USER, sudo=True) as executor:
        with pytest.raises(DeadlineError):
            executor.run(["sh", "-c", "sleep 4321", "/dev/null"], timeout_s=0.5)
        until(lambda: "sleep 4321" not in hosts[1].run("ps", "ax", "-o", "args"))


def test_sudo_that_asks_for_a_password_is_an_error(hosts: Fleet) -> None:
    """A user without sudo rights is told what to change; root needs no sudo at all."""
    with (
        executor_for(hosts, hosts[1], user=texts.NOBODY, sudo=True) as executor,
        pytest.raises(AuthError, match="sudo does not start a program on h1") as caught,
    ):
        executor.run(AS_ROOT)
    assert "NOPASSWD" in caught.value.hint
    with executor_for(hosts, hosts[1], sudo=True) as executor:
        assert executor.run(AS_ROOT).stdout == "root\n"
