"""Secrets of runs: handed to fio by its environment, and removed from what it writes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from volbench.engine.run.run_directory import RunDirectory
from volbench.errors import InputError
from volbench.model.campaign.planned_run import Run
from volbench.model.campaign.run_secrets import missing_secrets, variables_of
from volbench.model.profile.secret_values import mask_text
from volbench.store.atomic_files import write_atomic
from volbench.store.layout import JOB_FILE

_FOLDER, _FILE = ".secrets", "values"
# Start a program with variables from a file, which is removed first: its folder, as seen from the
# working directory, and the program
_SCRIPT = (
    'while IFS= read -r l; do export "$l"; done <"$1/values" && rm -rf -- "$1" && shift && '
    'exec "$@"'
)

# Endings of files without texts; the job file refers to its secrets by name
_LOGS = frozenset({".log", ".zst"})


def with_secrets(
    directory: RunDirectory, run: Run, argv: Sequence[str], secrets: Mapping[str, str]
) -> list[str]:
    """Return the command of a run with its secrets in the environment.

    They are in no argument list, and in a file (in a folder of mode 0700) only until the command
    starts.
    """
    if not (names := variables_of(run)):
        return list(argv)
    if missing := missing_secrets([run], secrets):
        name, use = next(iter(missing.items()))
        raise InputError(f"the password for {use} is unknown", hint=f"set the variable {name}")
    directory.send()
    folder = directory.path_of(_FOLDER)
    directory.executor.make_private_folder(folder)
    lines = [f"{name}={secrets[name]}\n" for name in names]
    directory.executor.write_text(f"{folder}/{_FILE}", "".join(lines))
    return ["sh", "-c", _SCRIPT, "secrets", _FOLDER, *argv]


def scrub(folder: Path, run: Run) -> None:
    """Mask the secrets of a run in its files: fio reports all options it was given."""
    if not variables_of(run) or not folder.is_dir():
        return
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)  # of a run that did not start
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in _LOGS and path.name != JOB_FILE:
            text = path.read_text(encoding="utf-8", errors="replace")
            if (masked := mask_text(text)) != text:
                write_atomic(path, masked)
