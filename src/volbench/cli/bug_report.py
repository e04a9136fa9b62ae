"""volbench bugreport: what a maintainer needs to know about a defect, without names and secrets."""

from __future__ import annotations

import getpass
import ipaddress
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
from typing import TYPE_CHECKING

import click

from volbench import __version__
from volbench.cli.options import PATH, examples, output_option
from volbench.errors import VolbenchError
from volbench.present.formatting import printable
from volbench.store.atomic_files import open_regular, write_output

if TYPE_CHECKING:
    from volbench.model.campaign.host import Host

_ADDRESS = re.compile(
    r"(?i)(?<![\w:.])(?:[\da-f]{0,4}:){2,7}[\da-f.]*(?![\w:])"  # IPv6, Ethernet; and times of day
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"
)
# What shows a name or a key by its form, and what stands for it
_FORMS = (
    (re.compile(r"(?i)\b(bearer|basic) +[\w.~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "***"),  # access keys of S3
    (re.compile(r"(/dev/disk/by-[a-z]+/)[^\s:,'\"]+"), r"\1DISK"),  # holds a serial number
    (re.compile(r"(/home/|/Users/|/media/|/run/media/)[^/\s:,'\"]+"), r"\1USER"),
    (re.compile(r"(://)[^/@\s'\"]*@"), r"\1USER@"),
    (re.compile(r"(://)[\w.-]+(?=[/:?\s]|$)"), r"\1HOST"),
    (re.compile(r"[\w.+%-]+@(?=[\w\[])"), "USER@"),
    (re.compile(r"@[a-zA-Z][\w.-]*"), "@HOST"),
)
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
    you send it: names of jobs and files remain, and messages of fio may contain other names.
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
        names |= names_of(host, f"host{number}")
    targets = dict.fromkeys(run.volume.target for run in plan.runs)
    for number, target in enumerate(targets, 1):
        names[target] = target if _KERNEL_NAME.fullmatch(target) else f"volume{number}"
    counts = count_states(plan, notes).items()
    about = [
        ("command", shlex.join(without_targets(plan.command))),
        ("planned by", f"volbench {data.provenance.volbench_version}"),
        ("runs", ", ".join(f"{count} {state}" for state, count in counts)),
    ]
    failed = [key for key, note in notes.items() if note.state is RunState.FAILED][-_MAX_RUNS:]
    logs = [("controller", _tail(layout.controller_log, _LOG_LINES))]
    for run_id in failed:
        about.append((f"{run_id} failed", notes[run_id].reason))
        logs.append((f"fio of {run_id}", _tail(layout.run(run_id).stderr, _ERROR_LINES)))
    return {"campaign": about, "last messages": [entry for entry in logs if entry[1]]}


def names_of(host: Host, stands_for: str) -> dict[str, str]:
    """Return the names of a host, of its users and of the hosts before it."""
    names = dict.fromkeys([host.name, host.address, *_short(host.address)], stands_for)
    names[host.user or ""] = "USER"
    for jump in host.jump or ():
        user, _, address = jump.rpartition("@")
        address = address.rpartition(":")[0] or address
        names |= {user: "USER"} | dict.fromkeys([address, *_short(address)], f"{stands_for}-jump")
    for hop in host.hops:
        names = names_of(hop, f"{stands_for}-jump") | names
    if host.pod is not None:
        kinds = ("name", "namespace", "node", "claim", "context")
        names |= {getattr(host.pod, kind): f"{stands_for}-{kind}" for kind in kinds}
    return names


def _short(address: str) -> list[str]:
    """Return the name of a host without its domain; nothing for an IP address."""
    first = address.partition(".")[0]
    return [] if first.isdecimal() else [first]


_ROLE = re.compile(r"[\w.:-]+=")  # before a target; ``nbd+unix:///?socket=`` is a part of one
_KERNEL_NAME = re.compile(r"/dev/\w+")  # such as /dev/sdb; /dev/mapper has names that people gave


def without_targets(command: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command without the folders of files and the targets as written."""
    before = ""
    for word in command:
        option, joined, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if (option or before) in {"--on", "--allow-destroy"} and value:
            role = _ROLE.match(value)
            given = value[role.end() :] if role else value
            value = value.removesuffix(given)
            value += given if _KERNEL_NAME.fullmatch(given) else "TARGET"
        elif value.startswith("/"):
            value = f".../{Path(value).name}"
        yield f"{option}{joined}{value}"
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

    known = {name.lower(): stands_for for name, stands_for in names.items() if name}
    if known:
        either = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        # a host's name is a part of the ID of its runs: 001-read-r1-vm1
        pattern = re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])", re.IGNORECASE)
        text = pattern.sub(lambda match: known[match[0].lower()], text)
    text = mask_text(text)
    for form, stands_for in _FORMS:
        text = form.sub(stands_for, text)
    return _ADDRESS.sub(lambda match: _masked_address(match[0]), text)


def _masked_address(text: str) -> str:
    """Return what stands for an address; a text that is none as it is, such as a time of day."""
    address = text.rstrip(".") if text.endswith("::") else text.rstrip(".:")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        if not re.fullmatch("(?i)[0-9a-f]{2}(?::[0-9a-f]{2}){5}", address):
            return text
    return "ADDRESS" + text[len(address) :]


def _own_names() -> dict[str, str]:
    """Return names of this machine and its user, and what stands for them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        user = ""
    users = {name: "USER" for name in (user, os.environ.get("SUDO_USER", "")) if name != "root"}
    own = socket.gethostname()
    return {str(Path.home()): "~", **dict.fromkeys([own, *_short(own)], "controller"), **users}


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
