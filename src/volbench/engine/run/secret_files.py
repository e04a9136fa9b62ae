"""Secrets of runs: handed to fio by its environment, and removed from what it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from volbench.engine.run.run_directory import RunDirectory
from volbench.errors import InputError
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_run import Campaign, Run
from volbench.model.profile.secret_values import (
    MASK,
    mask_text,
    merge_secrets,
    option_variable,
    split_secret,
    target_variable,
)
from volbench.store.archive import write_atomic
from volbench.store.layout import JOB_FILE

_FOLDER, _FILE = ".secrets", "values"
_SCRIPT = (
    'while IFS= read -r l; do export "$l"; done <"$1/values" && rm -rf -- "$1" && shift && '
    'exec "$@"'
)
"""Start a program with variables from a file, which is removed first: its folder, program."""

_LOGS = frozenset({".log", ".zst"})
"""Endings of files without texts; the job file refers to its secrets by name."""


def variables_of(run: Run) -> dict[str, str]:
    """Return the environment variables of a run's secrets, each with what it is for."""
    found = {}
    if MASK in run.volume.target:
        found[volume_variable(run)] = run.volume.target
    for section in run.sections:
        for name, value in run.effective(section).items():
            if MASK in value:
                found[option_variable(name)] = f"{name} of job {run.job}"
    return found


def volume_variable(run: Run) -> str:
    """Return the environment variable of the password in the URI of a run's volume."""
    return target_variable(run.host, run.volume.role, is_local=run.host == LOCAL)


def missing_secrets(runs: Iterable[Run], known: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of secrets that are not known, each with what it is for."""
    needed = {name: use for run in runs for name, use in variables_of(run).items()}
    return {name: use for name, use in needed.items() if name not in known}


def conceal(campaign: Campaign) -> tuple[Campaign, dict[str, str]]:
    """Return a plan whose options and hosts hold no secrets, and the secrets of its options.

    Raises:
        InputError: an option has two values.
    """
    found: list[tuple[str, str]] = []

    def masked(options: Mapping[str, str]) -> dict[str, str]:
        parts = {name: split_secret(name, value) for name, value in options.items()}
        found.extend((option_variable(name), secret) for name, (_, secret) in parts.items())
        return {name: value for name, (value, _) in parts.items()}

    runs = tuple(
        run.model_copy(
            update={
                "options": masked(run.options),
                "sections": tuple(
                    part.model_copy(update={"options": masked(part.options)})
                    for part in run.sections
                ),
                "note": mask_text(run.note),
            }
        )
        for run in campaign.runs
    )
    hosts = tuple(
        host.model_copy(
            update={
                "volumes": {role: mask_text(target) for role, target in host.volumes.items()},
                "allow_destroy": tuple(map(mask_text, host.allow_destroy)),
            }
        )
        for host in campaign.hosts
    )
    return campaign.model_copy(update={"runs": runs, "hosts": hosts}), merge_secrets(found)


def with_secrets(
    directory: RunDirectory, run: Run, argv: Sequence[str], secrets: Mapping[str, str]
) -> list[str]:
    """Return the command of a run with its secrets in the environment.

    They are in no argument list, and in a file (in a folder of mode 0700) only until the command
    starts.

    Raises:
        InputError: a secret is not known.
    """
    if not (names := variables_of(run)):
        return list(argv)
    if missing := missing_secrets([run], secrets):
        name, use = next(iter(missing.items()))
        raise InputError(f"the password for {use} is unknown", hint=f"set the variable {name}")
    folder = directory.path_of(_FOLDER)
    directory.executor.make_private_folder(folder)
    lines = [f"{name}={secrets[name]}\n" for name in names]
    directory.executor.write_text(f"{folder}/{_FILE}", "".join(lines))
    return ["sh", "-c", _SCRIPT, "secrets", folder, *argv]


def scrub(folder: Path, run: Run) -> None:
    """Mask the secrets of a run in the files of its folder: fio reports all options it was given.

    Raises:
        ArchiveError: a file cannot be written.
    """
    if not variables_of(run) or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_file() and path.suffix not in _LOGS and path.name != JOB_FILE:
            text = path.read_text(encoding="utf-8", errors="replace")
            if (masked := mask_text(text)) != text:
                write_atomic(path, masked)
