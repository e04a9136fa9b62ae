"""volbench bugreport: what a maintainer needs to know about a defect, without names and secrets."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from volbench import __version__
from volbench.cli.options import PATH, examples, output_option
from volbench.errors import VolbenchError
from volbench.present.formatting import printable
from volbench.store.atomic_files import open_regular, write_output

_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){4,7}\b")
_FIO_TIMEOUT_S = 10  # `fio --version` on a hung network filesystem. Noticed by: no test.
# Lines of a log that are shown, and of the errors of a run: the cause is near the end.
# Noticed by: tests/cli/test_bug_report.py
_LOG_LINES, _ERROR_LINES, _MAX_RUNS, _MAX_BYTES = 40, 15, 5, 65_536


@click.command(
    "bugreport",
    epilog=examples("volbench bugreport", "volbench bugreport results --output report.txt"),
)
@click.argument(
    "campaign", type=click.Path(exists=True, path_type=Path), required=False, metavar="[DIR]"
)
@output_option(type=PATH, metavar="FILE", help="Write the report to this file as well.")
def bugreport(campaign: Path | None, *, output: Path | None) -> None:
    """Print what belongs in a bug report: versions, the machine, the last messages of a campaign.

    Secrets, addresses and the names of users, hosts and volumes are masked. Read the report before
    you send it: messages of fio may hold other names.
    """
    names = _own_names()
    sections = {"versions": _versions(), "machine": _machine()}
    if campaign is not None:
        sections |= _campaign(campaign, names)
    lines = (
        f"\n{title}:\n"
        + "\n".join(
            f"  {key}:{text}" if text.startswith("\n") else f"  {key}: {text}"
            for key, text in entries
        )
        for title, entries in sections.items()
        if entries
    )
    report = masked("\n".join(lines).lstrip() + "\n", names)
    click.echo(report, nl=False)
    if output is not None:
        write_output(output, report.encode())


def _campaign(path: Path, names: dict[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Return the sections about a campaign, and add its names to those that are masked."""
    from volbench.api.one_campaign import open_campaign
    from volbench.model.campaign.planned_run import RunState, count_states
    from volbench.store.layout import Layout

    layout = Layout(path)
    try:
        data = open_campaign(path)
        plan, notes = data.campaign, data.runs
    except VolbenchError as error:
        return {"campaign": [("cannot be read", error.message)]}
    for number, host in enumerate(plan.hosts, 1):
        names |= {host.name: f"host{number}", host.address: f"host{number}"}
        names[host.user or ""] = "USER"
    targets = dict.fromkeys(run.volume.target for run in plan.runs)
    for number, target in enumerate(targets, 1):
        names[target] = target if target.startswith("/dev/") else f"volume{number}"
    counts = count_states(plan, notes).items()
    about = [
        ("command", shlex.join(_without_targets(plan.command))),
        ("planned by", f"volbench {data.provenance.volbench_version}"),
        ("runs", ", ".join(f"{count} {state}" for state, count in counts)),
    ]
    failed = [key for key, note in notes.items() if note.state is RunState.FAILED][-_MAX_RUNS:]
    logs = [("controller", _tail(layout.controller_log, _LOG_LINES))]
    for run_id in failed:
        about.append((f"{run_id} failed", notes[run_id].reason))
        logs.append((f"fio of {run_id}", _tail(layout.run(run_id).stderr, _ERROR_LINES)))
    return {"campaign": about, "last messages": [entry for entry in logs if entry[1]]}


def _without_targets(command: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, with a word in place of each target as its user wrote it."""
    before = ""
    for word in command:
        role, equals, _ = word.rpartition("=")
        is_target = before in {"--on", "--allow-destroy"} and not word.startswith("/dev/")
        yield f"{role}{equals}TARGET" if is_target else word
        before = word


def _tail(path: Path, lines: int) -> str:
    """Return the last lines of a log, indented; empty if there is none."""
    try:
        with open_regular(path) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _MAX_BYTES))
            content = log.read(_MAX_BYTES)
    except OSError:
        return ""
    last = content.decode(errors="replace").splitlines()[-lines:]
    return "".join(f"\n    {printable(line)}" for line in last)


def masked(text: str, names: Mapping[str, str]) -> str:
    """Return a text without secrets and addresses, and with other names for those given."""
    from volbench.model.profile.secret_values import mask_text

    found = sorted(filter(None, names), key=len, reverse=True)
    if found:
        either = "|".join(map(re.escape, found))
        pattern = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")
        text = pattern.sub(lambda match: names[match[0]], text)
    return _ADDRESS.sub("ADDRESS", mask_text(text))


def _own_names() -> dict[str, str]:
    """Return names of this machine and its user, and what stands for them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        user = ""
    names = {str(Path.home()): "~", socket.gethostname(): "controller", user: "USER"}
    return names if user != "root" else {**names, user: "root"}


def _versions() -> list[tuple[str, str]]:
    """Return versions of volbench, its libraries, Python and fio."""
    needs = (re.split(r"[<>=~\[ ;]", text)[0] for text in _requirements())
    return [
        ("volbench", __version__),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("libraries", ", ".join(f"{name} {_version(name)}" for name in sorted(set(needs)))),
        ("fio", _fio()),
    ]


def _requirements() -> Iterable[str]:
    try:
        return [text for text in requires("volbench") or () if "extra ==" not in text]
    except PackageNotFoundError:  # started from sources that were never installed
        return ()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _fio() -> str:
    program = shutil.which("fio")
    if program is None:
        return "not installed"
    try:
        done = subprocess.run(  # noqa: S603 - found on the PATH, as for a run
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_FIO_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} cannot be started: {error}"
    return f"{done.stdout.strip() or done.stderr.strip() or 'says nothing'} ({program})"


def _machine() -> list[tuple[str, str]]:
    """Return the system, its size, and the kinds of its disks."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        ("system", f"{system}, kernel {platform.release()}, {platform.machine()}"),
        ("size", f"{os.cpu_count()} CPUs, {memory:.1f} GiB of memory"),
        ("disks", "; ".join(_disks(Path("/sys/block"))) or "none that can be seen"),
    ]


def _disks(block: Path) -> Iterator[str]:
    """Yield each disk that has a size, without loop and RAM devices."""
    for disk in sorted(block.glob("*")):
        size = _number(disk / "size") * 512 / 2**30
        if size and not disk.name.startswith(("loop", "ram", "zram")):
            kind = "rotating" if _number(disk / "queue" / "rotational") else "not rotating"
            yield f"{disk.name} {size:.1f} GiB, {kind}"


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
