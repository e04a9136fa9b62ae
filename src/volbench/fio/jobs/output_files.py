"""Files that a run writes, whether it writes, and for how long it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from volbench.model.campaign.planned_run import Run, Section, VolumeKind
from volbench.model.profile.profile_model import Tool

# Options with which even a read section trims, removes files, or replays any kind of I/O
_CHANGING = ("trim_percentage", "unlink", "unlink_each_loop", "read_iolog")
# Engines that create, remove, truncate or move files whatever ``rw`` says
_CHANGING_ENGINES = frozenset({"filecreate", "filedelete", "ftruncate", "falloc", "e4defrag"})
_MEMORY_ENGINES = frozenset({"null", "cpuio", "net", "netsplice"})


def access_of(options: dict[str, str]) -> str:
    """Return fio's access pattern without its parameter; ``read`` is the default."""
    return options.get("rw", "read").partition(":")[0]


def section_writes(options: dict[str, str]) -> bool:
    """Return whether a section may change its volume; a mix may even at 100 % reads."""
    return (
        access_of(options) not in {"read", "randread"}
        or options.get("ioengine") in _CHANGING_ENGINES
        or any(options.get(name, "0") != "0" for name in _CHANGING)
    )


def writes(run: Run) -> bool:
    """Return whether a run may change its volume; a dd run does unless it has ``rw: read``."""
    if run.tool is Tool.DD:
        return run.effective(run.sections[0]).get("rw", "write") != "read"
    return any(section_writes(run.effective(section)) for section in run.sections)


_REMOVING = ("unlink", "unlink_each_loop")
_REMOVING_ENGINES = frozenset({"filedelete", "dirdelete"})


def removes_files(run: Run) -> bool:
    """Return whether fio itself removes files of a run."""
    return run.tool is Tool.FIO and any(
        options.get("ioengine") in _REMOVING_ENGINES
        or any(options.get(name, "0") != "0" for name in _REMOVING)
        for options in map(run.effective, run.sections)
    )


def needed_file_bytes(run: Run) -> int:
    """Return the length that each file of a run needs, as far as it is given in bytes.

    fio removes a shorter file and makes another, also for a run that only reads.
    """
    if run.tool is Tool.DD:
        return 0
    if run.extent is not None:
        return run.extent.volume_bytes
    return max(map(_end_bytes, map(run.effective, run.sections)), default=0)


def _end_bytes(options: dict[str, str]) -> int:
    """Return the end of the range of the last job of a section, in the one file of its own."""
    numbers = {
        name: int(text) if (text := options.get(name, "0")).isdecimal() else 0
        for name in ("size", "filesize", "offset", "offset_increment", "numjobs")
    }
    if not numbers["size"]:
        return numbers["filesize"]
    skipped = numbers["offset_increment"] * max(0, numbers["numjobs"] - 1)
    files = 1 + options.get("filename", "").count(":")
    return max(numbers["filesize"], numbers["offset"] + skipped + numbers["size"] // files)


def lays_out(run: Run) -> bool:
    """Return whether fio may lay out files before it reads them.

    A warm-up that reads is only started when its file exists in full length.
    """
    in_files = run.volume.kind in {VolumeKind.DIRECTORY, VolumeKind.FILE}
    return run.tool is Tool.FIO and in_files and not writes(run) and run.extent is None


def section_files(run: Run, section: Section) -> tuple[str, ...]:
    """Return the absolute paths of a section's files; empty for devices and exports."""
    options = run.effective(section)
    if options.get("ioengine") in _MEMORY_ENGINES:
        return ()
    if run.volume.kind is VolumeKind.FILE:
        return (run.volume.target,)
    if run.volume.kind is not VolumeKind.DIRECTORY:
        return ()
    folder = PurePosixPath(run.volume.folder)
    return tuple(str(folder / name) for name in _names(section, options))


def _names(section: Section, options: dict[str, str]) -> Iterator[str]:
    """Yield names as fio forms them: ``filename``, else ``filename_format`` for each job."""
    if "filename" in options:
        yield from options["filename"].split(":")
        return
    form = options.get("filename_format", "$jobname.$jobnum.$filenum")
    for job in range(int(options.get("numjobs", "1"))):
        for number in range(int(options.get("nrfiles", "1"))):
            name = form.replace("$jobname", section.name).replace("$jobnum", str(job))
            yield name.replace("$filenum", str(number))


def planned_files(run: Run) -> tuple[str, ...]:
    """Return the absolute paths of all files a run may create or write, without duplicates."""
    if run.tool is Tool.DD:
        sections: tuple[tuple[str, ...], ...] = ((dd_file(run),) if dd_file(run) else (),)
    else:
        sections = tuple(section_files(run, section) for section in run.sections)
    return tuple(dict.fromkeys(path for files in sections for path in files))


DD_FILE_NAME = "dd-test-file"  # Name of a dd job's file in a directory volume


def dd_file(run: Run) -> str:
    """Return the file of a dd run; empty for a device."""
    if run.volume.kind is VolumeKind.DIRECTORY:
        return str(PurePosixPath(run.volume.folder) / DD_FILE_NAME)
    return run.volume.target if run.volume.kind is VolumeKind.FILE else ""


def runtime_s(run: Run, section: Section) -> float | None:
    """Return the runtime of a section; None without one."""
    return seconds(run.effective(section).get("runtime"))


def seconds(canonical: str | None) -> float | None:
    """Return the seconds of a canonical duration such as ``300s`` or ``500ms``."""
    if canonical is None:
        return None
    digits = canonical.rstrip("msu")
    factor = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}[canonical[len(digits) :]]
    return float(digits) * factor
