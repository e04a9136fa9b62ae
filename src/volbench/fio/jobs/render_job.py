"""Job file of a run, the files that the run writes, and its runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from volbench import __version__
from volbench.errors import InputError, quoted
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.campaign.host import LOCAL
from volbench.model.campaign.planned_files import section_files
from volbench.model.campaign.planned_run import Run, Section, VolumeKind
from volbench.model.campaign.run_secrets import variables_of
from volbench.model.profile.fio_options import check_text
from volbench.model.profile.option_policy import (
    MEMORY_ENGINES,
    PLANNED_LOG,
    SENT_LOGS,
    changing_option,
)
from volbench.model.profile.secret_values import option_variable, reference, target_variable
from volbench.units import parse_duration

LOG_PREFIX = "series"  # Prefix of the log files in a run's folder
_LINE_LIMIT = 8191
_FILENAME_LIMIT = 4096
_RENDERED_APART = frozenset({"filename", "replay_redirect", "thread"})
_ALLOWED_NAME = re.compile(r"(?!include)[A-Za-z0-9_-]+")
_ALLOWED_HEADER = re.compile(r"[A-Za-z0-9_.-]+")
_SEEDS = ("randrepeat", "allrandrepeat", "randseed")


def writes(run: Run) -> bool:
    """Return whether a run may change its volume."""
    return any(changing_option(run.effective(section)) for section in run.sections)


def lays_out(run: Run) -> bool:
    """Return whether fio may lay out files before it reads them.

    A warm-up that reads is only started when its file exists in full length, and clients read a
    shared file only when it is written.
    """
    in_files = run.volume.kind in {VolumeKind.DIRECTORY, VolumeKind.FILE}
    has_own = run.extent is None and not all(map(run.only_reads_shared, run.sections))
    return in_files and not writes(run) and has_own


def runtime_s(run: Run, section: Section) -> float | None:
    """Return the runtime of a section; None without one."""
    text = run.effective(section).get("runtime")
    return None if text is None else parse_duration(text)


def render(run: Run, *, measuring: bool = True, prerun: str = "") -> str:
    """Return the job file of a run.

    Args:
        measuring: add what volbench needs for its reports: logs, percentiles, seeds. Without it the
            file has only the profile's options and ``thread``.
    """
    if measuring and len(run.sections) > 1:
        run = _ungrouped(run)
    lines = [
        *_head(run),
        "[global]",
        "# threads, for worker processes survive when fio is killed",
        "thread=1",
        *(_setting(name, value) for name, value in run.options.items() if _fits_global(run, name)),
        *(_start_barrier(run, prerun) if prerun else ()),
        *(_measuring(run) if measuring else ()),
    ]
    for section in run.sections:
        lines += ["", f"[{_header(section.name)}]", *_section(run, section, prerun)]
    return "\n".join(lines) + "\n"


def replays(run: Run) -> bool:
    """Return whether a run replays a log of I/Os."""
    return any("read_iolog" in run.effective(section) for section in run.sections)


def with_replayed_logs(run: Run, names: Mapping[str, str]) -> Run:
    """Return a run that replays other logs: `names` has new values of ``read_iolog``."""

    def renamed(options: dict[str, str]) -> dict[str, str]:
        log = options.get("read_iolog", "")
        return {**options, "read_iolog": names[log]} if log in names else options

    sections = tuple(
        section.model_copy(update={"options": renamed(section.options)}) for section in run.sections
    )
    return run.model_copy(update={"options": renamed(run.options), "sections": sections})


def planned_logs(run: Run) -> tuple[str, ...]:
    """Return the SHA-256 of each log that a planned run replays."""
    logs = (run.effective(section).get("read_iolog", "") for section in run.sections)
    found = (PLANNED_LOG.fullmatch(log) for log in logs)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def with_sent_logs(run: Run) -> Run:
    """Return a run whose logs are beside its job file, as they are on other hosts."""
    sent = {f"../../inputs/{digest}": f"{SENT_LOGS}/{digest}" for digest in planned_logs(run)}
    return with_replayed_logs(run, sent)


def _ungrouped(run: Run) -> Run:
    """Return a run without group_reporting, which merges unlike sections into one entry.

    It has the name of the first and the options of the last one (fio issues 499 and 2132).
    """
    sections = [
        section.model_copy(update={"options": _without_grouping(section.options)})
        for section in run.sections
    ]
    return run.model_copy(
        update={"options": _without_grouping(run.options), "sections": tuple(sections)}
    )


def _without_grouping(options: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name != "group_reporting"}


def _fits_global(run: Run, name: str) -> bool:
    """Return whether an option may be in [global].

    filename there overruns a buffer (#2151); options of an engine need the engine there.
    """
    engines = _engines(name)
    return name not in _RENDERED_APART and (not engines or run.options.get("ioengine") in engines)


def _engines(name: str) -> tuple[str, ...]:
    option = shipped_table().options.get(name)
    return option.engines if option else ()


def _head(run: Run) -> Iterator[str]:
    """Yield comments on the origin of the file; names and notes are reduced to safe characters."""
    yield f"# volbench {__version__}: profile {_comment(run.profile)}, job {_comment(run.job)}"
    if run.note:
        yield f"# {_comment(run.note)}"
    yield "# rerun it with: fio <this file>"
    for variable in variables_of(run):
        yield f"# its password is taken from the environment variable {variable}"
    for folder in dict.fromkeys(each.folder for each in run.volume.each if each.private_folder):
        yield f"# its folder was removed at the end: mkdir {quoted(_comment(folder))}"
    yield ""


def _comment(text: str) -> str:
    return re.sub(r"[^\w .,:()/%+-]", " ", " ".join(text.split()))[:200]


def _measuring(run: Run) -> Iterator[str]:
    """Yield the options that volbench adds for reporting; none of them changes the workload."""
    yield "# added by volbench for reporting"
    yield "lat_percentiles=1"
    yield "clat_percentiles=1"
    yield "slat_percentiles=1"
    if run.sample_s:
        # 0 would log every I/O, which costs memory and disturbs the measurement.
        yield f"log_avg_msec={max(1, round(run.sample_s * 1000))}"
        yield "log_unix_epoch=1"
        yield f"write_bw_log={LOG_PREFIX}"
        yield f"write_iops_log={LOG_PREFIX}"
        yield f"write_lat_log={LOG_PREFIX}"
    used = {name for section in run.sections for name in run.effective(section)}
    if not used.intersection(_SEEDS):
        yield "# added by volbench: different random offsets in each repeat, the same in a rerun"
        yield "randrepeat=0"
        # fio multiplies by it: 0 would give all jobs of a section the same offsets.
        yield f"randseed={run.seed or 1}"


def _start_barrier(run: Run, prerun: str) -> Iterator[str]:
    """Yield the option that lets every job wait for the common start."""
    yield "# added by volbench: all clients start at the same instant"
    command = run.options.get("exec_prerun")
    # Of two lines the later one counts.
    yield _setting("exec_prerun", f"{prerun} && {command}" if command else prerun)


def _section(run: Run, section: Section, prerun: str) -> Iterator[str]:
    exported = run.volume.kind is VolumeKind.NBD and not _is_without_files(run, section)
    for name, value in {**_inherited(run, section), **section.options}.items():
        if name == "exec_prerun" and prerun:
            yield _setting(name, f"{prerun} && {value}")
        elif name not in _RENDERED_APART and not (exported and name == "ioengine"):
            yield _setting(name, value)
    if "verify" in section.options and run.extent is not None:
        yield "# an interrupted warm-up leaves no verify state behind"
        yield "verify_state_save=0"
    yield from _volume_lines(run, section)


def _inherited(run: Run, section: Section) -> dict[str, str]:
    """Return options of the section's engine that cannot be in [global]."""
    engine = run.effective(section).get("ioengine", "")
    return {
        name: value
        for name, value in run.options.items()
        if engine in _engines(name) and not _fits_global(run, name)
    }


def _is_without_files(run: Run, section: Section) -> bool:
    return run.effective(section).get("ioengine") in MEMORY_ENGINES


def _volume_lines(run: Run, section: Section) -> Iterator[str]:
    """Yield the options that direct a section to its volume."""
    options = run.effective(section)
    paths = ":".join(escape_colons(volume.node) for volume in run.volume.each)
    match run.volume.kind:
        case _ if _is_without_files(run, section):
            return
        case _ if "read_iolog" in options:
            yield from _replayed(run, section)
        case VolumeKind.NBD:
            yield _setting("ioengine", "nbd")
            variable = target_variable(run.host, run.volume.role, is_local=run.host == LOCAL)
            yield _setting("uri", run.volume.node, variable=variable)
        case VolumeKind.DEVICE:
            yield _setting("filename", paths)
            yield "# fio must not create a file for a mistyped device"
            yield "allow_file_create=0"
        case VolumeKind.FILE:
            yield _setting("filename", paths)
        case VolumeKind.DIRECTORY if "filename" in options:
            # A missing directory is an error, whereas fio creates missing parents of a filename.
            yield _setting("directory", escape_colons(run.volume.folder))
            yield _setting("filename", _plain_names(options["filename"]))
            if run.only_reads_shared(section):
                yield "# written before by one run for all clients"
                yield "allow_file_create=0"
        case VolumeKind.UNKNOWN:
            raise InputError(
                f"job {run.job} cannot be rerun: the volume it was measured on is unknown",
                hint="write a profile, and name the volume with --on",
            )
        case VolumeKind.DIRECTORY:
            yield _setting("directory", escape_colons(run.volume.folder))
            _plain_names(options.get("filename_format", "job"))


def replayed_place(run: Run, section: Section) -> str:
    """Return the only file or device to which the I/Os of a replayed log go."""
    options = run.effective(section)
    places = section_files(run, section) or tuple(volume.node for volume in run.volume.each)
    if run.volume.kind is VolumeKind.NBD or len(places) > 1:
        raise InputError(
            f"job {run.job}: a log can only be replayed on a single device or file",
            hint="name a block device, or a directory and one filename",
        )
    _plain_names(options.get("filename", options.get("filename_format", "job")))
    redirect = options.get("replay_redirect", run.volume.role)
    if redirect not in {run.volume.role, run.volume.target, *places}:
        raise InputError(
            f"job {run.job}: replay_redirect {redirect} is not the volume of the job",
            hint=f"write the role of the volume: replay_redirect: {run.volume.role}",
        )
    return places[0]


def _replayed(run: Run, section: Section) -> Iterator[str]:
    """Yield the options that direct all I/O of a log to the volume, whatever files it names.

    fio 3.33 crashes on a log together with ``directory``, so the file has its full path.
    """
    place = replayed_place(run, section)
    yield _setting("filename", escape_colons(place))
    yield _setting("replay_redirect", place)
    if run.volume.kind is VolumeKind.DEVICE:
        yield "allow_file_create=0"


def _plain_names(names: str) -> str:
    """Return file names after a final check that none leaves the volume's directory."""
    parts = names.split(":")
    if not all(parts) or {"..", ".", "-"} & {*parts} or "/" in names or "\\" in names:
        raise InputError(
            f"{names!r} is not a list of plain file names",
            hint="give the folder with --on ROLE=PATH and the file by its name alone",
        )
    return names


def escape_colons(path: str) -> str:
    r"""Return a path for fio's filename, where ``\:`` is a colon and ``:`` separates files."""
    return path.replace(":", r"\:")


def _header(name: str) -> str:
    if not _ALLOWED_HEADER.fullmatch(name) or name.startswith("global") or len(name) > 127:
        raise InputError(
            f"{name!r} is not a valid section name of a job file",
            hint="use up to 127 letters, digits, - and _, not starting with global",
        )
    return name


def _setting(name: str, value: str, *, variable: str = "") -> str:
    """Return ``name=value`` after a final check that fio will read exactly this.

    A masked secret becomes a reference to its environment variable.
    """
    line = f"{name}={value}"
    refused = f"{line!r} cannot be written into a job file"
    if not _ALLOWED_NAME.fullmatch(name):
        raise InputError(f"{refused}: {name!r} is not an option", hint="correct the name")
    try:
        check_text(value)
    except InputError as error:
        raise InputError(f"{refused}: {error.message}", hint=error.hint) from error
    limit = _FILENAME_LIMIT if name == "filename" else _LINE_LIMIT
    if len(line.encode()) >= limit:
        raise InputError(f"{name} is longer than the {limit} bytes fio reads", hint="shorten it")
    return reference(variable or option_variable(name), line)
