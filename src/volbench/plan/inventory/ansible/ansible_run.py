"""Runs of ``ansible-inventory --list``, which resolves groups, ranges and variables.

Only the parsers of static files are enabled: no inventory script, no inventory plugin and no
``ansible.cfg`` of the current folder takes part.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from volbench.errors import InventoryError, Problem

INI = "ansible.builtin.ini"
YAML = "ansible.builtin.yaml"

_PROGRAM = "ansible-inventory"
_TIMEOUT_S = 120
_WARNING = re.compile(r"^\[(?:DEPRECATION )?WARNING\]:", re.MULTILINE)
_ORIGIN = re.compile(r"^Origin: .*?(?::(\d+)(?::(\d+))?)?$", re.MULTILINE)
_CAUSE = "<<< caused by >>>"
_DROPPED = "unexpected key"
"""Ansible only warns when it leaves out a misspelled ``children``, and the hosts below it."""


def list_inventory(path: Path, *, parsers: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what ``ansible-inventory --list`` prints about a file or folder, and its warnings.

    Args:
        path: the inventory.
        parsers: of Ansible that may read it: `INI`, `YAML` or both.

    Raises:
        InventoryError: Ansible is missing, or it cannot read the inventory.
    """
    program = shutil.which(_PROGRAM, path=_search_path())
    if program is None:
        raise InventoryError(
            f"{path} is an Ansible inventory, and {_PROGRAM} is not installed",
            hint="install ansible-core (pip install 'volbench[ansible]'), write the inventory in "
            f"volbench's own YAML, or run `{_PROGRAM} -i {path} --list > hosts.json` elsewhere "
            "and use that file",
            context={"path": str(path)},
        )
    with tempfile.TemporaryDirectory(prefix="volbench-ansible-") as folder:
        done = _run(program, path, Path(folder), parsers)
    if done.returncode != 0:
        raise _unreadable(path, done.stderr)
    warnings = [" ".join(text.split()) for text in _WARNING.split(done.stderr)[1:]]
    dropped = [warning for warning in warnings if _DROPPED in warning]
    if dropped:
        raise _problem(path, f"Ansible leaves a part of it out: {dropped[0]}")
    listing: dict[str, Any] = json.loads(done.stdout)
    return listing, warnings


def list_groups(groups: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return what Ansible makes of groups that come from a JSON listing without merged variables.

    Raises:
        InventoryError: Ansible is missing, or it cannot read the groups.
    """
    with tempfile.TemporaryDirectory(prefix="volbench-ansible-") as folder:
        copy = Path(folder) / f"{path.stem}.json"
        copy.write_text(json.dumps(groups), encoding="utf-8")
        return list_inventory(copy, parsers=(YAML,))


def _search_path() -> str:
    """Return PATH behind the folder of this Python: a venv need not be activated."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _run(
    program: str, path: Path, folder: Path, parsers: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    configuration = folder / "ansible.cfg"
    configuration.touch()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANSIBLE_")} | {
        "ANSIBLE_CONFIG": str(configuration),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_INVENTORY_ENABLED": ",".join(parsers),
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "COLUMNS": "1000",  # older versions wrap their warnings
        "LC_ALL": "C.UTF-8",
    }
    try:
        return subprocess.run(  # noqa: S603 - a program found on PATH, arguments as a list
            [program, "-i", str(path.absolute()), "--list"],
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InventoryError(
            f"{_PROGRAM} did not finish within {_TIMEOUT_S} s",
            hint=f"try it by hand: {_PROGRAM} -i {path} --list",
            context={"path": str(path)},
        ) from error
    except OSError as error:
        raise InventoryError(
            f"{program} cannot be started: {error.strerror or error}",
            hint="reinstall ansible-core",
            context={"path": str(path)},
        ) from error


def _unreadable(path: Path, stderr: str) -> InventoryError:
    """Return Ansible's own reason, with the place it names."""
    origins = _ORIGIN.findall(stderr)
    line, column = (int(number or 0) for number in (origins[-1] if origins else ("", "")))
    cause = stderr.rpartition(_CAUSE)[2].partition("Origin: ")[0] if _CAUSE in stderr else stderr
    words = " ".join(cause.split())[:500] or "no reason given"
    return _problem(path, f"Ansible cannot read it: {words}", line=line, column=column)


def _problem(path: Path, message: str, *, line: int = 0, column: int = 0) -> InventoryError:
    problem = Problem(message, str(path), line, column)
    return InventoryError(str(problem), problems=[problem])
