"""Python interface to running: profiles from files, names and mappings, and a campaign of them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from volbench.errors import InputError, unread

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.engine.run.stop_request import StopRequest
    from volbench.execute.protocol import Executor
    from volbench.fio.jobs.command_line import FioCommand
    from volbench.model.campaign.event import Listener
    from volbench.model.profile.profile_model import Profile


DEFAULT_RESULTS = "volbench-results"  # Folder in which new campaign folders are made
JOB_FILES = (".fio", ".job", ".ini")  # File name extensions of fio job files
_MAX_JOB_FILE = 16 << 20  # Characters


def run(  # noqa: PLR0913 - the keywords are the options of `volbench run`, one by one
    profile: str | os.PathLike[str] | Mapping[str, object],
    *,
    on: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]],
    output: str | os.PathLike[str] = "",
    settings: Mapping[str, object] | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    allow_destroy: str | Sequence[str] = (),
    wipe_signatures: bool = False,
    allow_shared_folder: bool = False,
    listener: Listener | None = None,
) -> Dataset:
    """Run a profile on volumes of this machine, as ``volbench run`` does, and open the campaign.

    Nothing is printed and nothing is asked: the guard refuses what would destroy data unless it is
    allowed by name. Ctrl-C stops the campaign; ``volbench resume`` continues it.

    >>> campaign = volbench.run(
    ...     {"name": "small", "jobs": {"reads": {"rw": "randread", "bs": "4k", "size": "1m"}}},
    ...     on="data",
    ... )
    >>> campaign.summary()[["job", "direction", "status"]].values.tolist()
    [['reads', 'read', 'finished']]

    Args:
        profile: a bundled profile by name, the path of a profile or of a fio job file, or the
            content of a profile.
        on: device, file, directory or NBD URI of the role ``data``; or role to target.
        output: the new campaign folder; ``volbench-results/NAME-TIME`` if it is empty.
        settings: overrides, such as ``{"size": "64m", "test1.bs": "8k"}``.
        repeat: how often measured jobs run; None for the profile's own.
        seed: of order and random offsets; None for the profile's own, or a random one.
        allow_destroy: devices and files that may be overwritten.
        wipe_signatures: these devices may hold filesystems, partitions and similar.
        allow_shared_folder: as root, measure in a folder that other users can write to.
        listener: called with each event, such as `volbench.model.campaign.event.RunProgress`.

    Raises:
        InputError: the profile is wrong, or a target does not exist.
        RefusedError: a run would destroy data.
        CampaignError: runs failed; the results of the others are in the folder.
        StoppedError: it was stopped.
    """
    from volbench.engine.hosts.connected_host import this_machine  # noqa: PLC0415 - slow to import

    return carry_out_profile(
        _loaded(this_machine().executor, profile, settings or {}),
        _targets(on),
        output=output,
        repeat=repeat,
        seed=seed,
        allow_destroy=allow_destroy,
        wipe_signatures=wipe_signatures,
        allow_shared_folder=allow_shared_folder,
        listener=listener,
        called="volbench.run",
    )


def carry_out_profile(  # noqa: PLR0913 - as for `run`
    profile: Profile,
    targets: Mapping[str, str],
    *,
    output: str | os.PathLike[str],
    repeat: int | None = None,
    seed: int | None = None,
    allow_destroy: str | Sequence[str],
    wipe_signatures: bool,
    allow_shared_folder: bool,
    listener: Listener | None,
    called: str,
) -> Dataset:
    """Run a loaded profile on this machine and open the campaign; see `run`.

    Args:
        targets: role to target.
        called: the function that a user called, for the record.
    """
    from volbench.api.campaign_drive import execute  # noqa: PLC0415 - slow to import
    from volbench.api.many_campaigns import open_campaign  # noqa: PLC0415 - slow to import
    from volbench.engine.campaign.campaign_state import Settings  # noqa: PLC0415 - same
    from volbench.engine.campaign.prepare import CampaignRequest, prepare  # noqa: PLC0415 - same
    from volbench.engine.hosts.connected_host import this_machine  # noqa: PLC0415 - same
    from volbench.model.campaign.planned_run import Consent  # noqa: PLC0415 - same
    from volbench.plan.expansion.expand import Terms  # noqa: PLC0415 - same
    from volbench.store.consent import create_signed_campaign  # noqa: PLC0415 - same

    devices = (allow_destroy,) if isinstance(allow_destroy, str) else tuple(allow_destroy)
    request = CampaignRequest(
        profiles=(profile,),
        targets=dict(targets),
        into=Path(output) if str(output) else _default_folder(profile.name),
        terms=Terms(
            repeat=repeat,
            seed=seed,
            consent=Consent(
                allow_destroy=devices,
                wipe_signatures=wipe_signatures,
                allow_shared_folder=allow_shared_folder,
            ),
            command=(called, profile.name),
        ),
    )
    prepared = prepare([this_machine()], request)
    layout = create_signed_campaign(request.into, prepared.archive, inputs=prepared.inputs)
    with _stopping() as stop:
        execute(
            layout,
            prepared.campaign,
            prepared.hosts,
            settings=Settings(secrets=prepared.secrets),
            listener=listener or _ignore,
            stop=stop,
        )
    return open_campaign(layout.root)


def _targets(on: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]]) -> dict[str, str]:
    named = on if isinstance(on, Mapping) else {"data": on}
    return {role: os.fspath(target) for role, target in named.items()}


def _default_folder(name: str) -> Path:
    from volbench.store.held_folder import checked_results_folder  # noqa: PLC0415 - with the guard

    return checked_results_folder(Path(DEFAULT_RESULTS)) / stamped(name)


def stamped(name: str) -> str:
    """Return the default name of a new campaign folder."""
    return f"{name}-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}"


@contextmanager
def _stopping() -> Iterator[StopRequest]:
    """Yield a request to stop that signals set; only the main thread receives signals."""
    from volbench.engine.run.stop_request import StopRequest, stop_on_signals  # noqa: PLC0415 - only where something runs

    if threading.current_thread() is threading.main_thread():
        with stop_on_signals() as stop:
            yield stop
    else:
        yield StopRequest()


def _loaded(
    executor: Executor,
    profile: str | os.PathLike[str] | Mapping[str, object],
    settings: Mapping[str, object],
) -> Profile:
    from volbench.model.document.yaml_text import yaml_text  # noqa: PLC0415 - slow to import

    if isinstance(profile, Mapping):
        sources = [(yaml_text(profile), "profile")]
    else:
        sources = profile_texts(executor, [os.fspath(profile)], allow_exec=False)
    changes = [f"{key}={value}" for key, value in settings.items()]
    (loaded,) = load_texts(executor, sources, settings=changes, allow_exec=False)
    return loaded


def _ignore(event: object) -> None:
    del event


def profile_texts(
    executor: Executor,
    names: Sequence[str],
    *,
    allow_exec: bool,
    sections: Sequence[str] = (),
    is_placed: bool = False,
    note: Callable[[str], None] = _ignore,
) -> list[tuple[str, str]]:
    """Return the text of each profile, and where it is from.

    Args:
        executor: machine whose fio gives meaning to options of job files.
        names: bundled names, paths of profiles and of fio job files, or command lines of fio, each
            in one text.
        allow_exec: accept options that run programs or access files outside the run's folder.
        sections: sections of job files that run one after the other; ``all`` for each of a file.
        is_placed: a volume replaces all volumes of job files and commands.
        note: called with what a profile cannot express of a job file or a command.
    """
    from volbench.fio.jobs.command_line import is_command  # noqa: PLC0415 - slow to import
    from volbench.plan.bundled_files import read_profile  # noqa: PLC0415 - only where profiles are read

    texts: list[tuple[str, str]] = []
    for name in names:
        is_words = is_command(name)
        is_file = not is_words and (Path(name).suffix in JOB_FILES or name == "-")
        if sections and not is_file:
            message = f"--section {sections[0]}: {name} is not a job file"
            raise InputError(message, hint="a command has --section after the word fio")
        if is_file or is_words:
            command = _command_of(executor, name, None if is_words else sections)
            command.is_placed = is_placed
            texts += _imported_texts(executor, command, allow_exec=allow_exec, note=note)
        else:
            texts.append(read_profile(name))
    return texts


def _command_of(executor: Executor, name: str, sections: Sequence[str] | None) -> FioCommand:
    from volbench.engine.hosts.host_facts import options_on  # noqa: PLC0415 - slow to import
    from volbench.fio.jobs.command_line import FioCommand, parse_command  # noqa: PLC0415 - same

    if sections is None:
        return parse_command(name, options_on(executor))
    chosen = [section for section in sections if section != "all"]
    return FioCommand(files=[name], chosen=chosen, is_in_turn=bool(sections))


def _imported_texts(
    executor: Executor, command: FioCommand, *, allow_exec: bool, note: Callable[[str], None]
) -> Iterator[tuple[str, str]]:
    """Yield the profiles of a job file or a command, one for each job file of a command.

    fio runs job files one after the other, and gives options of the command to the first alone.
    """
    from volbench.engine.hosts.host_facts import options_on  # noqa: PLC0415 - slow to import
    from volbench.fio.jobs.job_file import parse_jobfile  # noqa: PLC0415 - same
    from volbench.plan.profile.load_profile import dump_profile  # noqa: PLC0415 - same

    table = options_on(executor)
    if command.left_out:
        options = ", ".join(dict.fromkeys(command.left_out))
        note(f"left out: {options}: volbench records fio's JSON, logs and progress itself")
    for path in command.files or [""]:
        own = "fio" if command.is_nameless else f"fio --name={command.name}"
        text, where = (_job_text(path), path) if path else ("", own)
        imported = parse_jobfile(
            text, path=where, table=table, allow_exec=allow_exec, command=command
        )
        for notice in imported.notices:
            note(notice)
        yield dump_profile(imported.profile), where
        command = replace(command, sections=[])


def json_outputs(executor: Executor, names: Sequence[str]) -> list[Path]:
    """Return the files in which commands of fio among profiles want the JSON result."""
    from volbench.engine.hosts.host_facts import options_on  # noqa: PLC0415 - slow to import
    from volbench.fio.jobs.command_line import is_command, parse_command  # noqa: PLC0415 - same

    commands = [name for name in names if is_command(name) and "--output" in name]
    found = (parse_command(command, options_on(executor)).output for command in commands)
    return [Path(output) for output in found if output]


def _job_text(path: str) -> str:
    job_file = Path(path)
    if job_file.is_fifo() and job_file.parts[1:2] not in (("dev",), ("proc",)):
        raise InputError(f"{path} is a pipe", hint="name a file, or - for standard input")
    try:
        with nullcontext(sys.stdin) if path == "-" else job_file.open(encoding="utf-8") as file:
            text = file.read(_MAX_JOB_FILE + 1)
    except OSError as error:
        hint = "check its path; volbench profile list has the bundled profiles"
        raise InputError(f"{job_file}: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        message = f"{job_file} cannot be read: {unread(error)}"
        raise InputError(message, hint="save it as UTF-8") from error
    if len(text) > _MAX_JOB_FILE:
        raise InputError(f"{job_file} is larger than 16 MiB", hint="name a job file of fio")
    return text


def load_texts(
    executor: Executor,
    sources: Sequence[tuple[str, str]],
    *,
    settings: Sequence[str],
    allow_exec: bool,
) -> tuple[Profile, ...]:
    """Load profiles from texts, each with where it is from, and apply overrides."""
    from volbench.engine.hosts.host_facts import options_on  # noqa: PLC0415 - slow to import
    from volbench.plan.profile.load_profile import load_profile  # noqa: PLC0415 - same
    from volbench.plan.profile.profile_edits import settings_by_profile  # noqa: PLC0415 - same

    table = options_on(executor)
    profiles = [
        load_profile(text, path=path, table=table, allow_exec=allow_exec) for text, path in sources
    ]
    if not settings:
        return tuple(profiles)
    return tuple(
        load_profile(text, path=path, table=table, settings=chosen, allow_exec=allow_exec)
        for (text, path), chosen in zip(
            sources, settings_by_profile(profiles, settings), strict=True
        )
    )
