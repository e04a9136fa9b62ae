"""Import of a fio job file as a profile with the same meaning to fio."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from volbench.errors import InputError, Problems, did_you_mean
from volbench.fio.jobs.command_line import FioCommand
from volbench.fio.jobs.job_syntax import (
    Place,
    SectionText,
    Setting,
    added_files,
    find_place,
    is_device,
    read_value,
    split_colons,
    split_sections,
)
from volbench.model.profile.fio_options import Option, OptionTable, check_text
from volbench.model.profile.option_policy import (
    MAX_JOBS,
    OWN,
    PLANNED_LOG,
    changing_option,
    check_option,
    fio_conflicts,
)
from volbench.model.profile.profile_model import Job, Profile
from volbench.model.profile.profile_settings import Source
from volbench.units import format_capacity

_PLACES = frozenset({"filename", "directory", "uri"})
# Options set by volbench that a profile expresses in another way
_KEPT_APART = _PLACES | {"name", "description", "stonewall", "allow_file_create"}
_LOGS = frozenset(name for name in OWN if "log" in name) | {"bwavgtime", "iopsavgtime"}
# Options that fio keeps in the same variable: the last one counts
_EXCLUSIVE = ({"direct", "buffered"}, {"rwmixread", "rwmixwrite"})
# Options that fio takes and ignores, with the reason (options.c and profiles/ of 3.33)
_WITHOUT_EFFECT: Mapping[str, str] = {
    **dict.fromkeys(("rwmixcycle", "percentage_sequential", "flow_watermark"), "deprecated"),
    **dict.fromkeys(("verifysort", "verifysort_nr"), "deprecated"),
    **dict.fromkeys(("threads", "numruns"), "an option of fio's profile tiobench alone"),
}
# Options by which sections act on each other
_TOGETHER = ("exitall", "exitall_on_error", "flow")
# Options that may override what earlier ones of the set did, so that their order matters
_ORDERED = (
    {"gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement"},
    {"zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern"}
    | {"buffer_compress_percentage", "dedupe_percentage"},
    {"verify", "verify_pattern"},
)


@dataclass(frozen=True)
class ImportedJob:
    """Result of an import."""

    profile: Profile  # has the same meaning to fio
    # options that were left out, and values that fio reads in an unexpected way
    notices: tuple[str, ...] = ()


@dataclass
class _Section:
    """A job section with all options in effect."""

    header: str  # name in the file
    name: str  # name in the profile
    line: int
    options: dict[str, str]
    lines: dict[str, int]
    note: str = ""
    place: Place = field(default_factory=lambda: Place("."))


def parse_jobfile(
    text: str,
    *,
    path: str,
    table: OptionTable,
    allow_exec: bool = False,
    command: FioCommand | None = None,
) -> ImportedJob:
    """Return the profile of a job file.

    Sections that fio would run together become one job with sections; a stonewall starts a new job,
    since volbench runs every job in a process of its own.

    Args:
        command: that runs the file; its own sections come before those of the file.
    """
    command = command or FioCommand()
    importer = _Importer(Problems(path), table, command, allow_exec=allow_exec)
    of_file = split_sections(text, importer.problems, importer.notices)
    if len(of_file) > 2 * MAX_JOBS:
        message = f"{path} has {len(of_file)} sections; fio runs at most {MAX_JOBS} jobs at once"
        raise InputError(message, hint="split it")
    chosen = importer.chosen(of_file) if of_file else []
    sections = importer.sections([*command.sections, *chosen])
    if command.is_readonly:
        importer.refuse_writing(sections)
    importer.problems.raise_if_any()
    profile = importer.profile(sections, path if text else command.name)
    importer.problems.raise_if_any()
    if importer.logs:
        importer.notices.append(
            f"{', '.join(importer.logs)}: left out, since volbench records logs itself; --set"
            " sample=1s sets their interval"
        )
    return ImportedJob(profile, tuple(dict.fromkeys(importer.notices)))


class _Importer:
    """Collects problems and notices while the parts of a job file become a profile."""

    def __init__(
        self, problems: Problems, table: OptionTable, command: FioCommand, *, allow_exec: bool
    ) -> None:
        self.problems = problems
        self.notices: list[str] = []
        self.logs: dict[str, None] = {}  # names of options of logs, which are left out
        self._table = table
        self._command = command
        self._surprises: dict[int, str] = {}  # values that fio reads otherwise, by line
        self._lacks_engine = False
        self._allow_exec = allow_exec

    def sections(self, texts: list[SectionText]) -> list[_Section]:
        """Return the job sections, each with the options of the global sections above it."""
        shared: dict[str, tuple[str, int]] = {}
        parsed: list[_Section] = []
        for text in texts:
            merged = dict(shared)
            for setting in text.in_order():
                try:
                    self._merge(setting, merged)
                except InputError as error:
                    self.problems.add(
                        error.message, line=setting.line, key=setting.name, hint=error.hint
                    )
            if text.is_global:
                shared = merged
                continue
            options = {name: value for name, (value, _) in merged.items()}
            lines = {name: line for name, (_, line) in merged.items()}
            name = options.pop("name", text.name)
            section = _Section(text.name, name, text.line, options, lines)
            parsed += [section] if self._command.is_placed else _by_folder(section)
        if len({section.name for section in parsed}) == 1 and "name" in shared:
            for section in parsed if len(parsed) > 1 else ():  # all have the name of [global]
                section.name = section.header
        if not parsed and not self.problems.found:
            self.problems.add("there is no job section", hint="name one: [NAME], or --name=NAME")
        places = dict.fromkeys(volume for each in parsed for volume in _volumes(each.options))
        if self._command.is_placed and len(places) > 1:
            note = f"{', '.join(places)} are replaced by one volume, which carries the load of all"
            self._section_note(0, note)
        for section in parsed:
            self._settle(section)
        self._rename(parsed)
        return parsed

    def chosen(self, texts: list[SectionText]) -> list[SectionText]:
        """Return the sections of a file that a command runs, with the global sections."""
        names, known = self._command.chosen, [each.name for each in texts if not each.is_global]
        for name in names:
            if name not in {*known, *(section.name for section in self._command.sections)}:
                hint = did_you_mean(name, known, f"it has {', '.join(known)}")
                self.problems.add(f"there is no section {name!r}", hint=hint)
        return [each for each in texts if not names or each.is_global or each.name in names]

    def refuse_writing(self, sections: list[_Section]) -> None:
        """Refuse sections that fio refuses with ``--readonly``."""
        for section in sections:
            if option := changing_option(section.options):
                message = f"{section.name} may write, which --readonly forbids"
                self._add(section, option, message, "leave out --readonly, or make it read")

    def _merge(self, setting: Setting, merged: dict[str, tuple[str, int]]) -> None:
        """Add an option to those of a section, as fio reads it after them."""
        option = self._option_of(setting)
        if option is None:
            return
        is_decimal = merged.get("kb_base", ("", 0))[0] == "1000"
        read = read_value(option, setting.value, kb_base=1000 if is_decimal else 1024)
        if read.surprise:
            self._section_note(setting.line, read.surprise)
            self._surprises[setting.line] = read.surprise
        if option.name == "read_iolog" and not PLANNED_LOG.fullmatch(read.value):
            read = replace(read, value=str(Path(read.value).absolute()))  # fio opens it from here
        if option.name in OWN:
            if option.name not in _KEPT_APART:
                raise InputError(f"{option.name} cannot be kept", hint=OWN[option.name])
            check_text(read.value)
        elif option.name not in _PLACES:
            check_option(self._table, option.name, read.value, allow_exec=self._allow_exec)
        value = self._with_places(option.name, read.value, setting.line, merged)
        families = [family for family in _EXCLUSIVE if option.name in family]
        for rival in set().union(*families) - {option.name}:
            if merged.pop(rival, None):
                text = f"{option.name} replaces {rival}: fio keeps the last of them"
                self._section_note(setting.line, text)
        merged[option.name] = value, setting.line

    def _option_of(self, setting: Setting) -> Option | None:
        """Return the option of a line; None if a profile needs no such line."""
        option = self._table.find(setting.name)
        if option is None:
            if reason := _WITHOUT_EFFECT.get(setting.name):
                self._section_note(setting.line, f"{setting.name} is left out: {reason}")
            elif not self._lacks_engine:  # whose option it probably is
                check_option(self._table, setting.name, "1")
            return None
        if option.name in _LOGS:
            self.logs[option.name] = None
            return None
        if option.name == "ioengine":
            engine = (setting.value or "").partition(":")[0].strip()
            self._lacks_engine |= engine not in {*self._table.engines, "external"}
        return option

    def _with_places(
        self, name: str, value: str, line: int, merged: Mapping[str, tuple[str, int]]
    ) -> str:
        """Return the value of an option, for filename all files with their directories."""
        before, folder = (merged.get(key, ("", 0))[0] for key in ("filename", "directory"))
        if name == "directory" and before:
            text = "filename stands before directory, so that fio does not put the file in it"
            self._section_note(line, text)
        return added_files(before, value, folder) if name == "filename" else value

    def _settle(self, section: _Section) -> None:
        """Find a section's volume and remove options that the profile expresses otherwise."""
        try:
            section.place = find_place(section.options, is_placed=self._command.is_placed)
        except InputError as error:
            name = "filename" if "filename" in section.options else "directory"
            self._add(section, name, error.message, error.hint)
        on_file = section.place.filename is not None or "uri" not in section.options
        for name in _PLACES:
            section.options.pop(name, None)
        creates = section.options.pop("allow_file_create", "1") == "1"
        if not creates and on_file and not is_device(section.place.target):
            message = "allow_file_create=0 cannot be kept for files"
            hint = "leave it out; volbench sets it for devices"
            self._add(section, "allow_file_create", message, hint)
        if section.place.filename is not None:
            section.options["filename"] = section.place.filename
        self._note_repetition(section)
        section.note = section.options.pop("description", "")
        timed = section.options.get("time_based") == "1"
        if timed and section.options.get("runtime", "0s") == "0s":
            self._section_note(
                section.lines["time_based"], "time_based without runtime does nothing"
            )
            del section.options["time_based"]
        read_as = [text for line, text in self._surprises.items() if line in section.lines.values()]
        for conflict in fio_conflicts(section.options):
            message = "; ".join([conflict.message, *read_as])
            self._add(section, conflict.option, message, conflict.hint)

    def _note_repetition(self, section: _Section) -> None:
        options, jobs = section.options, section.options.get("numjobs", "1")
        pattern, device = options.get("rw", "read"), section.place.target
        in_parts = {"offset_increment", "read_iolog"} & options.keys()
        if jobs != "1" and pattern in {"read", "write"} and is_device(device) and not in_parts:
            size = options.get("size", "the whole device")
            part = f"the same {format_capacity(int(size))}" if size.isdecimal() else size
            text = f"numjobs={jobs} each {pattern} {part}: {jobs} times"
            self._section_note(section.lines["numjobs"], text)

    def _rename(self, sections: list[_Section]) -> None:
        """Give every section a name that is valid in a profile, and keep its file names."""
        taken: set[str] = set()
        known: dict[str, str] = {}
        for section in sections:
            self._rename_waits(section, known)
            name = re.sub(r"[^A-Za-z0-9_-]+", "_", section.name)[:90] or "job"
            while name in taken:
                name += "_2"
            taken.add(name)
            known[section.name] = name
            if name != section.name:
                self._section_note(section.line, f"section {section.name!r} is renamed to {name}")
            section.name = name
            is_named = {"filename", "filename_format"} & section.options.keys()
            if name == section.header or is_named or not section.place.target:
                continue
            if re.search(r"[/\\:$]|\.\.", section.header):
                self.problems.add(
                    f"fio would name files after {section.header!r}",
                    line=section.line,
                    hint="rename the section, or give it a filename",
                )
            section.options["filename_format"] = f"{section.header}.$jobnum.$filenum"

    def _rename_waits(self, section: _Section, known: dict[str, str]) -> None:
        """Let wait_for name the section by its new name; it must be above this one."""
        wanted = section.options.get("wait_for")
        if wanted is None:
            return
        if wanted not in known:
            message = f"there is no section {wanted!r} above this one"
            self._add(section, "wait_for", message, "fio rejects it too")
        section.options["wait_for"] = known.get(wanted, wanted)

    def profile(self, sections: list[_Section], path: str) -> Profile:
        """Return the profile of settled sections."""
        is_in_turn = self._command.is_in_turn
        groups = _by_name(sections) if is_in_turn else self._simultaneous_sections(sections)
        touched = (section.place.target for section in sections if section.place.target)
        targets = list(dict.fromkeys(touched)) or ["."]
        roles = {target: "data" if i == 1 else f"data{i}" for i, target in enumerate(targets, 1)}
        common = {
            name: value
            for name, value in sections[0].options.items()
            if len(sections) > 1
            and name != "wait_for"
            and all(section.options.get(name) == value for section in sections)
            and not any(
                name in family and len(family & section.options.keys()) > 1
                for section in sections
                for family in _ORDERED
            )
        }
        jobs = _distinct([self._job(group, common, roles) for group in groups])
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(path).stem).strip("-") or "imported"
        is_file = any(section.line for section in sections)
        source = f"{PurePosixPath(path).name}" if is_file else f"the fio command of {path}"
        return Profile(
            name=f"job-{stem}" if stem.startswith("global") else stem[:100],
            description=f"Imported from {source}.",
            source=Source(title=f"fio job file {source}" if is_file else source),
            defaults=dict(common),
            jobs=jobs,
            volumes={role: target for target, role in roles.items()},
        )

    def _simultaneous_sections(self, sections: list[_Section]) -> list[list[_Section]]:
        """Return sections that run together; a stonewall waits for everything before it."""
        groups: list[list[_Section]] = []
        for section in sections:
            waits = section.options.pop("stonewall", "0") == "1"
            if not groups or waits:
                groups.append([])
            groups[-1].append(section)
            if len(groups) > 1:
                self._check_late(section, groups)
        for group in groups:
            if len({section.header for section in group}) > 1:
                otherwise = "--section all" if group[0].line else "--stonewall after each --name"
                volumes = {section.place.target for section in group} - {""}
                where = f" on {len(volumes)} volumes" if len(volumes) > 1 else ""
                self.notices.insert(
                    0,
                    f"{len(group)} sections run at the same time{where}, as fio would run them; "
                    f"one after the other: {otherwise}",
                )
        return groups

    def _check_late(self, section: _Section, groups: list[list[_Section]]) -> None:
        """Check options whose meaning changes when a section has a process of its own."""
        if section.options.get("exit_what") == "all":
            message = "exit_what=all ends jobs after a stonewall too, which cannot be kept"
            self._add(section, "exit_what", message, "leave it out")
        if section.options.get("startdelay", "0s") != "0s":
            message = "startdelay after a stonewall counts from the start of the whole job file"
            self._add(section, "startdelay", message, "leave it out")
        earlier = {other.name for group in groups[:-1] for other in group}
        if section.options.get("wait_for") in earlier:
            self._section_note(
                section.lines["wait_for"], "wait_for is left out: that job has ended before"
            )
            del section.options["wait_for"]

    def _job(self, group: list[_Section], common: dict[str, str], roles: dict[str, str]) -> Job:
        first = group[0]
        targets = {section.place.target for section in group} - {""}
        if len(targets) > 1:
            self._check_apart(group)
        options_of = [
            {name: value for name, value in section.options.items() if name not in common}
            for section in group
        ]
        note = "; ".join(section.note for section in group if section.note)
        usual = roles[first.place.target or min(targets)] if targets else next(iter(roles.values()))
        role_of = {each.name: roles.get(each.place.target, usual) for each in group}
        role = role_of[first.name]
        if len(group) == 1:
            return Job(name=first.name, role=role, note=note, options=options_of[0])
        named = {section.name: options for section, options in zip(group, options_of, strict=True)}
        apart = {name: other for name, other in role_of.items() if other != role}
        return Job(name="_".join(named)[:90], role=role, roles=apart, note=note, sections=named)

    def _check_apart(self, group: list[_Section]) -> None:
        """Check options that a section on a volume of its own cannot keep, in another process."""
        volume = {section.name: section.place.target for section in group}
        for section in group:
            names = [name for name in _TOGETHER if section.options.get(name, "0") != "0"]
            if volume.get(section.options.get("wait_for", ""), section.place.target) != (
                section.place.target
            ):
                names.append("wait_for")
            for name in names:
                message = f"{name} cannot be kept for sections on several volumes at the same time"
                hint = "leave it out; each volume has a process of fio"
                self._add(section, name, message, hint)

    def _add(self, section: _Section, name: str, message: str, hint: str) -> None:
        line = section.lines.get(name, section.line)
        self.problems.add(message, line=line, key=name, hint=hint)

    def _section_note(self, line: int, text: str) -> None:
        place = f"{self.problems.path}:{line}" if line else self.problems.path
        self.notices.append(f"{place}: {text}")


def _volumes(options: Mapping[str, str]) -> list[str]:
    files = [PurePosixPath(path) for path in split_colons(options.get("filename", ""))]
    folders = split_colons(options.get("directory", ""))
    named = [str(path if is_device(str(path)) else path.parent) for path in files]
    return named or [str(PurePosixPath(folder)) for folder in folders]


def _by_folder(section: _Section) -> list[_Section]:
    """Return a section for each of its directories: fio gives its jobs one after the other."""
    folders = split_colons(section.options.get("directory", ""))
    jobs = int(section.options.get("numjobs", "1"))
    if len(folders) < 2 or jobs < 1 or {"filename", "offset_increment"} & section.options.keys():
        return [section]
    parts = []
    for number, folder in enumerate(folders[:jobs]):
        count = -((number - jobs) // len(folders))
        own = {"directory": folder.replace(":", r"\:"), "numjobs": str(count)}
        if number:
            own["stonewall"] = "0"
        name = f"{section.name}-{number + 1}" if number else section.name
        parts.append(replace(section, name=name, options={**section.options, **own}))
    return parts


def _by_name(sections: list[_Section]) -> list[list[_Section]]:
    """Return the sections of each name, which fio runs together for ``--section=NAME``."""
    named: dict[str, list[_Section]] = {}
    for section in sections:
        for name in ("stonewall", "wait_for"):
            section.options.pop(name, None)
        named.setdefault(section.header, []).append(section)
    return list(named.values())


def _distinct(jobs: list[Job]) -> tuple[Job, ...]:
    """Return jobs with unique names; jobs of several sections have combined names."""
    taken = {job.name for job in jobs if not job.sections}
    renamed = []
    for job in jobs:
        name = job.name
        while job.sections and name in taken:
            name += "_2"
        taken.add(name)
        renamed.append(job.model_copy(update={"name": name}))
    return tuple(renamed)
