"""A fio job file in, a Profile that means the same to fio out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from volbench.errors import InputError, Problems
from volbench.fio.asread import read_value
from volbench.fio.jobtext import SectionText, Setting, split_sections
from volbench.fio.places import Place, find_place
from volbench.model.canonical import check_option
from volbench.model.option import OWN, OptionTable
from volbench.model.profile import Job, Options, Profile, Source

_PLACES = frozenset({"filename", "directory", "uri"})
_LOGS = frozenset(name for name in OWN if "log" in name)
_DROPPED = _LOGS | {"allow_file_create"}


@dataclass(frozen=True)
class ImportedJob:
    """What an import gives.

    Attributes:
        profile: means the same to fio.
        notices: what was left out, or is read by fio in a way that surprises.
    """

    profile: Profile
    notices: tuple[str, ...] = ()


@dataclass
class _Section:
    """One job section with everything that holds in it."""

    name: str
    line: int
    options: dict[str, str]
    lines: dict[str, int]
    note: str = ""
    place: Place = field(default_factory=lambda: Place("."))


def parse_jobfile(
    text: str, *, path: str, table: OptionTable, allow_exec: bool = False
) -> ImportedJob:
    """Turn a job file into a profile.

    Sections that fio would run together become one job with sections; a stonewall starts a new job,
    since volbench runs jobs one after another in processes of their own.

    Args:
        text: the job file.
        path: for messages, and for the profile's name.
        table: options of the fio that reads it.
        allow_exec: keep options that run programs or leave the Run's folder.

    Raises:
        ProfileError: everything that can't be kept, with its line.
    """
    importer = _Importer(Problems(path), table, allow_exec=allow_exec)
    sections = importer.sections(split_sections(text, importer.problems))
    importer.problems.raise_if_any()
    profile = importer.profile(sections, path)
    importer.problems.raise_if_any()
    return ImportedJob(profile, tuple(dict.fromkeys(importer.notices)))


class _Importer:
    """Collects problems and notices while the parts of a job file become a profile."""

    def __init__(self, problems: Problems, table: OptionTable, *, allow_exec: bool) -> None:
        self.problems = problems
        self.notices: list[str] = []
        self._table = table
        self._allow_exec = allow_exec

    def sections(self, texts: list[SectionText]) -> list[_Section]:
        """Return the job sections, each with the globals that stand above it."""
        shared: dict[str, tuple[str, int]] = {}
        found: list[_Section] = []
        for text in texts:
            own = {name: (value, line) for name, value, line in self._read(text)}
            if text.is_global:
                shared |= own
                continue
            merged = {**shared, **own}
            options = {name: value for name, (value, _) in merged.items()}
            lines = {name: line for name, (_, line) in merged.items()}
            found.append(_Section(text.name, text.line, options, lines))
        if not found and not self.problems.found:
            self.problems.add("there is no job section in it", hint="fio runs nothing either")
        for section in found:
            self._settle(section)
        self._rename(found)
        return found

    def _read(self, text: SectionText) -> Iterator[tuple[str, str, int]]:
        for setting in text.settings:
            try:
                yield from self._read_one(setting)
            except InputError as error:
                self.problems.add(
                    error.message, line=setting.line, key=setting.name, hint=error.hint
                )

    def _read_one(self, setting: Setting) -> Iterator[tuple[str, str, int]]:
        option = self._table.find(setting.name)
        if option is None:
            check_option(self._table, setting.name, "1")
            return
        read = read_value(option, setting.value)
        if read.surprise:
            self._note(setting.line, read.surprise)
        if option.name in _LOGS and "/" in read.value and not self._allow_exec:
            raise InputError("a log path leaves the Run's folder", hint="leave the option out")
        if option.name == "name" or (option.name == "kb_base" and read.value != "1024"):
            raise InputError(f"{option.name} can't be kept", hint="leave it out, write bytes")
        if option.name in _DROPPED:
            self._note(setting.line, f"{option.name} is left out: {OWN[option.name]}")
            return
        if option.name not in OWN and option.name not in _PLACES:
            check_option(self._table, option.name, read.value, allow_exec=self._allow_exec)
        yield option.name, read.value, setting.line

    def _settle(self, section: _Section) -> None:
        """Find a section's volume and take away what the profile says in other ways."""
        try:
            section.place = find_place(section.options)
        except InputError as error:
            line = section.lines.get("filename", section.lines.get("directory", section.line))
            self.problems.add(error.message, line=line, key=section.name, hint=error.hint)
        for name in _PLACES:
            section.options.pop(name, None)
        if section.place.filename is not None:
            section.options["filename"] = section.place.filename
        section.note = section.options.pop("description", "")

    def _rename(self, sections: list[_Section]) -> None:
        """Give every section a name that a profile can have, without moving its files."""
        taken: set[str] = set()
        for section in sections:
            name = re.sub(r"[^A-Za-z0-9_-]+", "_", section.name)[:90] or "job"
            while name in taken:
                name += "_2"
            taken.add(name)
            if name == section.name:
                continue
            self._note(section.line, f"section {section.name!r} is called {name}")
            if "filename" not in section.options and "filename_format" not in section.options:
                if not re.fullmatch(r"[\w .,+-]+", section.name):
                    self.problems.add(
                        f"fio would name files after {section.name!r}",
                        line=section.line,
                        hint="rename the section, or give it a filename",
                    )
                section.options["filename_format"] = f"{section.name}.$jobnum.$filenum"
            section.name = name

    def profile(self, sections: list[_Section], path: str) -> Profile:
        """Return the profile of settled sections."""
        groups = self._groups(sections)
        targets = list(dict.fromkeys(section.place.target for section in sections))
        roles = {target: "data" if i == 1 else f"data{i}" for i, target in enumerate(targets, 1)}
        common = {
            name: value
            for name, value in sections[0].options.items()
            if all(section.options.get(name) == value for section in sections)
            and (len(sections) > 1 and name != "filename")
        }
        jobs = tuple(self._job(group, common, roles) for group in groups)
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(path).stem).strip("-") or "imported"
        return Profile(
            name=f"job-{stem}" if stem.startswith("global") else stem[:100],
            description=f"Imported from {PurePosixPath(path).name}.",
            source=Source(title=f"fio job file {PurePosixPath(path).name}"),
            defaults=dict(common),
            jobs=jobs,
            volumes={role: target for target, role in roles.items()},
        )

    def _groups(self, sections: list[_Section]) -> list[list[_Section]]:
        """Return sections that run together; a stonewall waits for everything before it."""
        groups: list[list[_Section]] = []
        for section in sections:
            waits = section.options.pop("stonewall", "0") == "1"
            if not groups or waits:
                groups.append([])
            groups[-1].append(section)
            if len(groups) > 1:
                self._check_late(section, groups)
        return groups

    def _check_late(self, section: _Section, groups: list[list[_Section]]) -> None:
        """Check what means something else once a section has a process of its own."""
        if section.options.get("startdelay", "0s") != "0s":
            self.problems.add(
                "startdelay after a stonewall counts from the start of the whole job file",
                line=section.lines["startdelay"],
                key="startdelay",
                hint="leave it out",
            )
        earlier = {other.name for group in groups[:-1] for other in group}
        if section.options.get("wait_for") in earlier:
            self._note(section.lines["wait_for"], "wait_for is left out: that job has ended before")
            del section.options["wait_for"]

    def _job(self, group: list[_Section], common: dict[str, str], roles: dict[str, str]) -> Job:
        first = group[0]
        if len({section.place.target for section in group}) > 1:
            self.problems.add(
                f"{' and '.join(section.name for section in group)} run together on several "
                "volumes; a Run has one",
                line=group[1].line,
                hint="let one wait with stonewall, or put their files into one folder",
            )
        own = [_without(section.options, common) for section in group]
        note = "; ".join(section.note for section in group if section.note)
        role = roles[first.place.target]
        if len(group) == 1:
            return Job(name=first.name, role=role, note=note, options=own[0])
        named = {section.name: options for section, options in zip(group, own, strict=True)}
        return Job(name="_".join(named)[:90], role=role, note=note, sections=named)

    def _note(self, line: int, text: str) -> None:
        self.notices.append(f"{self.problems.path}:{line}: {text}")


def _without(options: dict[str, str], common: dict[str, str]) -> Options:
    return {name: value for name, value in options.items() if name not in common}
