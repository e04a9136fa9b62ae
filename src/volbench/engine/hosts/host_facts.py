"""Facts about a machine, its identity, and its fio: detection, version, options."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from volbench.engine.hosts.connected_host import Clock, estimate_clock
from volbench.errors import FioError, OutputError
from volbench.execute.agent.facts import ANSWER_S, Survey
from volbench.execute.agent.files import which
from volbench.execute.protocol import Executor
from volbench.fio.jobs.option_table import installed_table, shipped_table
from volbench.fio.results.json_output import parse_version
from volbench.model.campaign.host import LOCAL
from volbench.model.profile.fio_options import OptionTable
from volbench.model.results.provenance import HostFacts

# Oldest fio supported for runs; results of older versions can be imported.
# Noticed by: test_volume_probe.py::test_an_old_fio_is_refused
OLDEST_FIO = (3, 18)
_SIDE_BY_SIDE = 4  # Parallel fio processes that print option descriptions: more gain nothing.


@dataclass(frozen=True)
class InstalledFio:
    """A fio binary supported for runs."""

    path: str  # path of the binary
    version: str  # version as printed by fio, such as ``fio-3.33``


def survey_machine(executor: Executor) -> tuple[Survey, Clock | None]:
    """Return the facts of a machine, and its clock; None if it reports no time."""
    survey, readings = executor.survey()
    return survey, estimate_clock(readings) if readings else None


def probe_host(executor: Executor, *, survey: Survey | None = None) -> HostFacts:
    """Return facts about a machine, with or without fio."""
    survey = survey or executor.survey()[0]
    return HostFacts(
        host=executor.host,
        machine=machine_of(survey),
        kernel=survey.kernel,
        os=survey.os,
        cpu_model=survey.cpu_model,
        cpus=survey.cpus,
        memory_bytes=survey.memory_bytes,
        memory_limit_bytes=survey.memory_limit_bytes,
        fio_version="" if survey.fio.status else survey.fio.stdout.strip(),
        virtualization=survey.virtualization,
    )


def machine_of(survey: Survey) -> str:
    """Return an identity of the machine that does not disclose its machine-id.

    machine-id(5) is confidential, so its digest is used; without one, the digest of the host name.
    """
    name = survey.machine_id or survey.hostname
    return hashlib.sha256(f"volbench {name}".encode()).hexdigest()[:16]


def require_fio(executor: Executor) -> str:
    """Return the path of a supported fio; see `find_fio`."""
    return find_fio(executor, executor.survey()[0]).path


def find_fio(executor: Executor, survey: Survey) -> InstalledFio:
    """Return a supported fio."""
    path, version = survey.fio.path, survey.fio.stdout.strip()
    if not path:
        where = "this machine" if executor.host == LOCAL else executor.host
        raise FioError(f"fio is not installed on {where}", hint="install it: apt-get install fio")
    try:
        numbers = parse_version(version)
    except OutputError as error:
        raise _not_fio(path, survey.fio.stderr, version, survey.fio.status) from error
    if numbers < OLDEST_FIO:
        raise FioError(
            f"{path} is {version}; runs need fio 3.18 or newer",
            hint="install a newer fio and put it first on PATH",
        )
    return InstalledFio(path, version)


def fio_path(executor: Executor) -> str | None:
    """Return the absolute path of a machine's fio, or None."""
    return executor.ask(which, "fio")


def options_on(executor: Executor) -> OptionTable:
    """Return the options of a machine's fio, or the shipped table if fio is missing or too old."""
    fio = fio_path(executor)
    if fio is None:
        return shipped_table()

    def answer(argument: str) -> str:
        done = executor.run([fio, argument], timeout_s=ANSWER_S)
        if done.exit_status:
            raise _not_fio(fio, done.stderr, done.stdout, done.exit_status)
        return done.stdout

    def ask(arguments: Sequence[str]) -> list[str]:
        if not arguments:
            return []
        with ThreadPoolExecutor(min(len(arguments), _SIDE_BY_SIDE)) as threads:
            return list(threads.map(answer, arguments))

    try:
        table = installed_table(ask)
        is_old = parse_version(f"fio-{table.fio_version}") < OLDEST_FIO  # it is refused later
    except OutputError as error:  # another program may be called fio
        raise _not_fio(fio, "", answer("--version"), 0) from error
    return shipped_table() if is_old else table


def _not_fio(path: str, stderr: str, stdout: str, status: int) -> FioError:
    """Return the error of a program that is called fio and does not answer as fio does."""
    first, *_ = (stderr.strip() or stdout.strip() or f"exit status {status}").splitlines()
    return FioError(
        f"{path} does not answer as fio does: {first}",
        hint="check that this fio works: fio --version",
    )
