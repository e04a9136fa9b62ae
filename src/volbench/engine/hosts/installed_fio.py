"""Installed fio of a machine: detection, installation on request, version, options."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from volbench.errors import FioError, OutputError
from volbench.execute.protocol import Executor
from volbench.fio.jobs.option_table import installed_table, shipped_table
from volbench.fio.version import parse_version
from volbench.model.profile.fio_options import OptionTable

OLDEST_FIO = (3, 18)  # Oldest fio supported for runs; results of older versions can be imported

INSTALL_S = 900.0  # Time limit of an installation: slow mirrors take minutes

_SIDE_BY_SIDE = 4  # Number of parallel fio processes that print option descriptions

# Package manager to the command that installs fio
_MANAGERS = {
    "apt-get": ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "install", "fio"),
    "dnf": ("dnf", "-qy", "install", "fio"),
    "apk": ("apk", "add", "fio"),
}


@dataclass(frozen=True)
class InstalledFio:
    """A fio binary supported for runs."""

    path: str  # path of the binary
    version: str  # version as printed by fio, such as ``fio-3.33``


def require_fio(executor: Executor) -> str:
    """Return the path of a supported fio; see `find_fio`."""
    return find_fio(executor).path


def find_fio(executor: Executor, *, may_install: bool = False) -> InstalledFio:
    """Return a supported fio; install it if it is missing and `may_install` is set."""
    path = executor.which("fio")
    if path is None and may_install:
        _install(executor)
        path = executor.which("fio")
    if path is None:
        raise FioError(
            f"fio is not installed on {executor.host}",
            hint="install it: apt-get install fio",
        )
    done = executor.run([path, "--version"])
    version = done.stdout.strip()
    try:
        numbers = parse_version(version)
    except OutputError as error:
        words = done.stderr.strip() or version or f"exit status {done.exit_status}"
        raise FioError(
            f"{path} does not print its version: {words}",
            hint="check that this fio works: fio --version",
        ) from error
    if numbers < OLDEST_FIO:
        raise FioError(
            f"{path} is {version}; runs need fio 3.18 or newer",
            hint="install a newer fio and put it first on PATH",
        )
    return InstalledFio(path, version)


def options_on(executor: Executor) -> OptionTable:
    """Return the options of a machine's fio, or the shipped table if fio is missing."""
    fio = executor.which("fio")
    if fio is None:
        return shipped_table()

    def answer(argument: str) -> str:
        done = executor.run([fio, argument])
        if done.exit_status:
            raise FioError(
                f"{fio} {argument} failed: {done.stderr.strip() or done.stdout.strip()}",
                hint="check that this fio works: fio --version",
            )
        return done.stdout

    def ask(arguments: Sequence[str]) -> list[str]:
        if not arguments:
            return []
        with ThreadPoolExecutor(min(len(arguments), _SIDE_BY_SIDE)) as threads:
            return list(threads.map(answer, arguments))

    return installed_table(ask)


def _install(executor: Executor) -> None:
    manager = next((name for name in _MANAGERS if executor.which(name)), None)
    if manager is None:
        raise FioError(
            f"fio is not installed on {executor.host}, and no supported package manager is there",
            hint=f"install it manually; supported are {', '.join(_MANAGERS)}",
        )
    as_root = () if executor.run(["id", "-u"]).stdout.strip() == "0" else ("sudo", "-n")
    done = executor.run([*as_root, *_MANAGERS[manager]], timeout_s=INSTALL_S)
    if done.exit_status:
        last_line = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        raise FioError(
            f"fio cannot be installed on {executor.host}: {manager}: {last_line}",
            hint="install it manually, or give your user sudo without a password",
        )
