"""A machine without fio in, one with it out: by the package manager that it has, when asked to."""

from __future__ import annotations

from volbench.engine.hosts.volume_probe import require_fio
from volbench.errors import FioError
from volbench.execute.protocol import Executor

INSTALL_S = 900.0
"""Slow mirrors take minutes."""

_MANAGERS = {
    "apt-get": ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "install", "fio"),
    "dnf": ("dnf", "-qy", "install", "fio"),
    "apk": ("apk", "add", "fio"),
}
"""Program that tells the manager to what it is asked."""


def with_fio(executor: Executor, *, may_install: bool) -> str:
    """Return the path of a fio that Runs can be made with, installed now where it is missing.

    Args:
        executor: the machine.
        may_install: whether the user asked for that.

    Raises:
        FioError: there is none, and it may not or could not be installed.
    """
    if may_install and executor.which("fio") is None:
        _install(executor)
    return require_fio(executor)


def _install(executor: Executor) -> None:
    manager = next((name for name in _MANAGERS if executor.which(name)), None)
    if manager is None:
        raise FioError(
            f"fio is not installed on {executor.host}, and no package manager is known there",
            hint=f"install it by hand; known are {', '.join(_MANAGERS)}",
            context={"host": executor.host},
        )
    as_root = () if executor.run(["id", "-u"]).stdout.strip() == "0" else ("sudo", "-n")
    done = executor.run([*as_root, *_MANAGERS[manager]], timeout_s=INSTALL_S)
    if done.exit_status:
        said = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        raise FioError(
            f"fio can't be installed on {executor.host}: {manager} says: {said}",
            hint="install it by hand, or let your user do that by sudo without a password",
            context={"host": executor.host},
        )
