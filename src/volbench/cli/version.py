"""Text of ``volbench --version --verbose``: versions, the system and the configuration."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from volbench import __version__
from volbench.api.run_profiles import DEFAULT_RESULTS
from volbench.cli.configuration import (
    KEYS,
    LOCAL_FILE,
    Default,
    read_configuration,
    text_of,
    user_file,
)
from volbench.errors import VolbenchError
from volbench.model.profile.secret_values import mask_text

_FIO_TIMEOUT_S = 10  # `fio --version` on a hung network filesystem. Noticed by: no test.


def environment_text() -> str:
    """Return the environment for a bug report, secrets masked: a section for each subject."""
    sections = {"versions": _versions(), "system": _system(), "configuration": _configuration()}
    lines = [
        f"\n{title}:\n" + "\n".join(f"  {key}: {text}" for key, text in entries)
        for title, entries in sections.items()
    ]
    return mask_text("\n".join(lines).lstrip())


def _versions() -> Iterator[tuple[str, str]]:
    yield "volbench", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "libraries", ", ".join(f"{name} {_version(name)}" for name in _libraries())
    yield "fio", _fio()


def _libraries() -> list[str]:
    try:
        needs = [text for text in requires("volbench") or () if "extra ==" not in text]
    except PackageNotFoundError:  # started from sources that were never installed
        return []
    return sorted({re.split(r"[<>=~\[ ;]", text)[0] for text in needs})


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
    return f"{done.stdout.strip() or done.stderr.strip() or 'no output'} ({program})"


def _system() -> Iterator[tuple[str, str]]:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    yield "system", f"{name}, kernel {platform.release()}, {platform.machine()}"
    yield "size", f"{os.cpu_count()} CPUs, {memory:.1f} GiB of memory"


def _configuration() -> Iterator[tuple[str, str]]:
    """Yield each key with its value and the file that it comes from, and missing files."""
    try:
        values = {"results": Default(DEFAULT_RESULTS, None), **read_configuration()}
    except VolbenchError as error:
        yield "error", error.message
        return
    for key, meaning in KEYS.items():
        default = values.get(key)
        source = f" (from {default.file or 'volbench'})" if default else ""
        yield key, f"{text_of(default.value) if default else 'n/a'}{source}. {meaning}"
    for file in (LOCAL_FILE, user_file()):
        if not file.is_file():
            yield "no such file", str(file)
