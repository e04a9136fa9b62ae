"""Campaign plan: volumes, and an ordered list of runs, each exactly one process of fio."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from volbench.model.campaign.host import Host, Policy
from volbench.model.campaign.target_paths import paths_of
from volbench.model.client_counts import counted_job, split_count
from volbench.model.frozen_model import Count, FileName, Frozen, Seconds
from volbench.model.profile.expect_setting import Expect
from volbench.model.profile.option_policy import on_export, shared_sizes
from volbench.model.profile.profile_model import Order, Phase, Start, Tool
from volbench.model.profile.profile_settings import Limits, Repeat, Rounds, Until
from volbench.units import counted_noun

# Device major and minor, inode, and birth in ns since 1970 (0: not recorded by its filesystem)
FileIdentity = tuple[int, int, int, int]
AUDIT = "audit"  # Profile of an audit, whose answer is its verdict


class VolumeKind(StrEnum):
    """Kind of target of a volume; unknown for some imported results."""

    DEVICE = "device"
    FILE = "file"
    DIRECTORY = "directory"
    NBD = "nbd"
    UNKNOWN = "unknown"


class DevicePin(Frozen):
    """Identity of a block device when the campaign was planned; verified before each run."""

    path: str  # resolved, such as ``/dev/sdb``
    major: Count  # device number
    minor: Count  # device number
    size_bytes: Count  # capacity
    serial: str = ""  # empty when the device reports none
    model: str = ""  # empty when the device reports none
    wwid: str = ""  # World Wide Name or NVMe identifier; empty when the device reports none
    by_id: str = ""  # its first name in /dev/disk/by-id; empty when udev gives it none
    backing: str = ""  # device and inode of the file behind a loop device; empty for other devices
    # first sector of a partition, in units of 512 bytes; 0 for other devices
    start_sector: Count = 0
    boot_id: str = ""  # boot ID of the kernel that reported `diskseq`
    # the kernel's number of this attachment of the disk, never used twice in one boot; 0 before
    # Linux 5.15
    diskseq: Count = 0
    edges: str = ""  # digest of its first and last MiB; empty when they could not be read
    signature: str = ""  # content detected by blkid; empty if none


class Volume(Frozen):
    """A storage target under the name a profile uses for it."""

    role: FileName  # such as ``data`` or ``os``
    kind: VolumeKind  # device, file, directory or nbd; unknown for some imported results
    target: str  # the path or NBD URI as the user gave it, made absolute
    pin: DevicePin | None = None  # identity of a device; None for the other kinds
    # folder that volbench created for new files, in the directory or beside the file; None where
    # they are in the directory itself, and for a file that exists
    private_folder: FileName | None = None
    parts: tuple[Volume, ...] = ()  # the devices or files of a job that has several

    @property
    def each(self) -> tuple[Volume, ...]:
        """Its devices or files, each of them a volume; itself if it is a single one."""
        return self.parts or (self,)

    @property
    def size_bytes(self) -> int | None:
        """Capacity of its devices; None for other volumes."""
        pins = [volume.pin for volume in self.each]
        return sum(pin.size_bytes for pin in pins if pin) if all(pins) else None

    @property
    def node(self) -> str:
        """Path or URI that programs open: of a device where the links to it led when it was pinned.

        A link in a folder of another user may be turned after the guard's check.
        """
        if self.private_folder and self.kind is VolumeKind.FILE:
            return str(PurePosixPath(self.folder) / PurePosixPath(self.target).name)
        return self.target if self.pin is None else self.pin.path

    @property
    def place(self) -> str:
        """Folder that the volume needs: a directory itself, or that of a file or node."""
        if self.kind is VolumeKind.DIRECTORY:
            return self.target
        return str(PurePosixPath(self.target if self.pin is None else self.pin.path).parent)

    @property
    def folder(self) -> str:
        """Folder of its files."""
        return str(PurePosixPath(self.place) / (self.private_folder or ""))


class Section(Frozen):
    """One section of a job file."""

    name: str  # header of the section
    # canonical options; these override those of the run
    options: dict[str, str] = Field(default_factory=dict)


class Extent(Frozen):
    """Range of a volume that one run of a warm-up touches."""

    offset_bytes: Count  # start of the range
    size_bytes: Count  # bytes transferred
    volume_bytes: Count  # bytes that the complete warm-up covers
    direction: str  # ``write``, ``read``, ``used`` (reads), ``random`` or ``sample`` (read back)
    whole_bytes: Count = 0  # capacity of the volume; 0 when unknown
    note: str = ""  # why it covers this, or is done in this way


class ImportedJob(Frozen):
    """Entries of an imported result that form one section of a run."""

    name: str  # fio's jobname
    groupid: Count  # fio's reporting group
    section: str  # section of the run
    numjobs: Count = 1  # jobs in parallel, each with its own numbered log
    is_merged: bool = False  # whether fio merged unlike sections into it (group_reporting)


class SourceFile(Frozen):
    """A file that was imported."""

    name: FileName  # name in the folder of the run
    source: str  # path relative to the imported file or folder
    sha256: str  # digest of its content, which is unchanged


class Imported(Frozen):
    """Part of an imported result that forms a run."""

    # the result first, then its logs; logs only where `read_as` is set
    files: tuple[SourceFile, ...]
    document: Count = 0  # index of the result among the documents in its file, from 0
    hostname: str = ""  # host name of fio's client; empty where the document names none
    port: Count | None = None  # port of fio's client
    jobs: tuple[ImportedJob, ...]  # entries that belong to the run; all others belong to other runs
    first_job_number: Count = 1  # number of its first log
    # sections whose options the document does not report in full, so that fio's defaults cannot be
    # assumed
    incomplete_sections: tuple[str, ...] = ()
    # options that this version of fio omits although they may have been set
    unreported_flags: tuple[str, ...] = ()
    read_as: str = ""  # fio version that applies to logs without a result; empty with a result
    folder: str = ""  # of the result below the imported path, without hosts and numbers of repeats
    labels: dict[str, str] = Field(default_factory=dict)  # of the result, beside those of its host
    # number of other processes on its volume at the same time; they are clients of its step
    beside: Count = 0


class Run(Frozen):
    """One job on one volume of one host, one repeat."""

    id: FileName  # unique in the campaign and a folder name, such as ``001-test1-r1``
    profile: str  # name of the profile that defines the job
    job: str  # name of the job
    volume: Volume  # the volume under test
    phase: Phase = Phase.MEASURED  # precondition, warmup or measured
    repeat: Count = 1  # 1-based
    arm: str = ""  # variant of the job; empty for jobs without variants
    # number of the block of arms that it belongs to, from 1; 0 for runs outside blocks
    block: Count = 0
    tool: Tool = Tool.FIO  # watch for a load that was only watched
    host: str = "local"  # ``local`` for this machine
    seed: Count = 0  # seed of fio's random offsets
    # canonical options shared by all sections
    options: dict[str, str] = Field(default_factory=dict)
    sections: tuple[Section, ...]  # at least one
    note: str = ""  # the job's remark
    limits: Limits = Limits()  # declared limits of the volume
    sample_s: Seconds = 1.0  # seconds between points of the series; 0 for none
    # seconds between samples of the kernel's counters of the device; 0 for none
    device_sample_s: Seconds = 1.0
    # criterion that ends the run when it is steady; None to run its full length
    until: Until | None = None
    # part of the volume that a warm-up run covers; None for other runs
    extent: Extent | None = None
    client: Count = 0  # number among several processes on its host, from 1; 0 for the only one
    # position in the plan of its host, from 1; runs of one step run at the same time
    step: Count = 0
    in_turn: bool = False  # begins only when all earlier steps have ended
    start: Start = Start.TOGETHER  # start time relative to the other runs of its step
    start_offset_s: Seconds = 0.0  # delay after the start of the first run of its step
    imported: Imported | None = None  # origin of its files; None for runs that volbench executed
    # name of the file that all clients of its host read; one run before them writes it
    shared: FileName | None = None
    # bounds on latencies; the run is a trial in the search for the highest rate that keeps them,
    # and what it asks for is chosen when it begins
    within: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Run, ...]:
        """The run on each device or file of its volume, with its part of the size."""
        return tuple(self._part(*part) for part in enumerate(self.volume.parts)) or (self,)

    def _part(self, number: int, volume: Volume) -> Run:
        sections = []
        for section in self.sections:
            options = self.effective(section)
            sizes = shared_sizes(options, len(self.volume.parts))
            own = {"size": sizes[number]} if "size" in options else {}
            sections.append(section.model_copy(update={"options": {**section.options, **own}}))
        return self.model_copy(update={"volume": volume, "sections": tuple(sections)})

    @property
    def workload(self) -> str:
        """Name of the job without its arm."""
        job, count = split_count(self.job)
        plain = job.removesuffix(f"-{self.arm}") if self.arm else job
        return counted_job(plain, count) if count else plain

    @property
    def client_name(self) -> str:
        """Display name of the client: its host, with a number where the host has several."""
        return f"{self.host} client {self.client}" if self.client else self.host

    def reports_options(self, section: Section) -> bool:
        """Return whether the options of a section are known, so that fio's defaults apply."""
        if self.tool is Tool.WATCH:
            return False
        return self.imported is None or section.name not in self.imported.incomplete_sections

    def is_merged(self, section: Section) -> bool:
        """Return whether a section is of unlike jobs, which have no pattern in common."""
        jobs = self.imported.jobs if self.imported else ()
        return any(job.is_merged for job in jobs if job.section == section.name)

    def has_default(self, section: Section, name: str) -> bool:
        """Return whether an option has fio's default where a section does not set it."""
        omitted = () if self.imported is None else self.imported.unreported_flags
        is_known = name not in omitted or name in self.effective(section)
        return is_known and self.reports_options(section)

    def only_reads_shared(self, section: Section) -> bool:
        """Return whether a section reads the shared file, which another run has written."""
        is_measured = self.shared is not None and self.phase is not Phase.PRECONDITION
        return is_measured and self.effective(section).get("filename") == self.shared

    def with_options(self, options: Mapping[str, str]) -> Run:
        """Return the run with further options in each section."""
        sections = tuple(
            section.model_copy(update={"options": {**section.options, **options}})
            for section in self.sections
        )
        return self.model_copy(update={"sections": sections}) if options else self

    def effective(self, section: Section) -> dict[str, str]:
        """Return the options of a section and its run, and the ioengine that its volume needs."""
        options = {**self.options, **section.options}
        return on_export(options) if self.volume.kind is VolumeKind.NBD else options


class RunState(StrEnum):
    """State of a run."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NOT_NEEDED = "not-needed"
    LOST = "lost"

    @property
    def is_settled(self) -> bool:
        """Whether no work remains: the run is finished, not needed, or its host was lost."""
        return self in {RunState.FINISHED, RunState.NOT_NEEDED, RunState.LOST}

    @property
    def has_ended(self) -> bool:
        """Whether the run was started and ended, so that files of it exist."""
        return self in {RunState.FINISHED, RunState.FAILED, RunState.INTERRUPTED}


class OnError(StrEnum):
    """Action of a campaign after a failed run."""

    CONTINUE = "continue"
    STOP = "stop"


class Absent(Frozen):
    """A selected host that was unavailable when the campaign was planned."""

    host: str  # name of the host
    reason: str  # cause, one sentence
    clients: Count = 1  # number of clients planned for it


def _each_path(allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return a permission for each path of a volume of several, all of the same host."""
    hosts = [
        match[0] if (match := re.match(r"[^/:]+:(?=/[^/])", entry)) else "" for entry in allowed
    ]
    return tuple(
        host + path
        for host, entry in zip(hosts, allowed, strict=True)
        for path in paths_of(entry.removeprefix(host))
    )


class Consent(Frozen):
    """Permission of the user to destroy data."""

    # devices, files and NBD URIs that may be overwritten, as given; ``HOST:DEVICE`` on other hosts
    allow_destroy: Annotated[tuple[str, ...], AfterValidator(_each_path)] = ()
    # these may hold a filesystem, partition table, LUKS or swap, or be members of larger volumes
    wipe_signatures: bool = False
    allow_shared_folder: bool = False  # root may measure where other users can write


class Campaign(Consent):
    """An ordered plan with all decisions made before the start."""

    name: str  # name of the campaign; profile and time by default
    created_utc: str  # ISO 8601 with ``Z``
    runs: tuple[Run, ...]  # runs in order of execution
    seed: Count  # seed of shuffle and offsets, always recorded
    order: Order = Order.LISTED  # order of the measured runs
    arms: tuple[str, ...] = ()  # variants of jobs, the base of comparisons first
    on_error: OnError = OnError.CONTINUE  # continue or stop after a failed run
    command: tuple[str, ...] = ()  # the command line, secrets masked
    # roles whose volumes are probed for coldness before the first run
    cold_probe_roles: tuple[FileName, ...] = ()
    hosts: tuple[Host, ...] = ()  # hosts under test; empty for the controller's own machine
    policy: Policy = Policy.ALL  # number of hosts that must complete a run for its totals to count
    quorum: Count = 0  # that number when the policy is ``quorum``
    absent: tuple[Absent, ...] = ()  # unavailable hosts that the policy tolerates
    # host to path to identity, of files of the user that the plan is about: no other is used
    files: dict[str, dict[str, FileIdentity]] = Field(default_factory=dict)
    # profile to the end condition of its rounds; the repeat of its runs is the round
    rounds: dict[str, Rounds] = Field(default_factory=dict)
    # profile to when the repeats of each of its workloads end, where that is not a number
    repeats: dict[str, Repeat] = Field(default_factory=dict)
    expect: dict[str, Expect] = Field(default_factory=dict)  # profile to its expectations
    # jobs that differ in their queue depth, ascending: a deeper queue is tried while it gains
    ladders: tuple[tuple[FileName, ...], ...] = ()

    def with_chosen(self, chosen: Mapping[str, Mapping[str, str]]) -> Campaign:
        """Return the plan with the options that were chosen when runs began, by run."""
        runs = tuple(run.with_options(chosen.get(run.id, {})) for run in self.runs)
        return self.model_copy(update={"runs": runs}) if chosen else self

    @property
    def clients_absent(self) -> int:
        """Number of clients missing from every step from the start."""
        return sum(host.clients for host in self.absent)

    @property
    def design(self) -> str:
        """Blocks and their arms, such as ``10 blocks of aio, uring``; empty without arms."""
        blocks = {run.block for run in self.runs if run.arm}
        arms = self.arms or dict.fromkeys(run.arm for run in self.runs if run.arm)
        most = "at most " if self.repeats else ""
        if not arms:
            return ""
        return f"{most}{counted_noun(len(blocks), 'block')} of {', '.join(arms)}"

    @property
    def key(self) -> str:
        """Unique key of the campaign, used as a folder name on hosts and volumes."""
        return f"{re.sub('[^0-9]', '', self.created_utc)}-{self.seed:08x}"

    @property
    def is_imported(self) -> bool:
        """Whether the runs are imported results, which cannot be executed."""
        return any(run.imported for run in self.runs)

    @property
    def is_watched(self) -> bool:
        """Whether volbench only watched the load, which cannot be executed again."""
        return any(run.tool is Tool.WATCH for run in self.runs)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of all labels of hosts and imported results, in order of first appearance."""
        imported = (run.imported.labels for run in self.runs if run.imported)
        every = (*(host.labels for host in self.hosts), *imported)
        return tuple(dict.fromkeys(name for labels in every for name in labels))

    def labels_of(self, run: Run) -> dict[str, str]:
        """Return the labels of a run: of its host, and of the imported result."""
        host = self._host_labels.get(run.host, {})
        return {**host, **(run.imported.labels if run.imported else {})}

    @cached_property
    def _host_labels(self) -> dict[str, dict[str, str]]:
        return {host.name: host.labels for host in self.hosts}

    def identity_of(self, run: Run, section: str | None) -> dict[str, object]:
        """Return the columns that identify a section of a run in frames; None for the whole run."""
        return {
            "campaign": self.name,
            "run": run.id,
            "host": run.host,
            "profile": run.profile,
            "job": run.job,
            "group": section,
            "role": run.volume.role,
            "volume": run.volume.target,
            "repeat": run.repeat,
            "phase": run.phase.value,
        }

    def ends_with(self, run: Run) -> bool:
        """Return whether a failure of this run ends the campaign; preparation runs always do."""
        return run.phase is not Phase.MEASURED or self.on_error is OnError.STOP


@dataclass(frozen=True)
class RunNote:
    """State of a run and the reason for it."""

    state: RunState  # planned, running, finished, failed, interrupted or not needed
    reason: str = ""  # fio's own words or volbench's; empty when finished
    # as planned, to name a run without results; None where the plan is not known
    run: Run | None = field(default=None, compare=False, repr=False)


def note_of(run: Run, states: Mapping[str, RunNote]) -> RunNote:
    """Return the note of a run; one without a note was planned and never ran."""
    return states.get(run.id, RunNote(RunState.PLANNED))


def count_states(campaign: Campaign, states: Mapping[str, RunNote]) -> dict[RunState, int]:
    """Return the number of runs in each state, states without runs left out."""
    counts = dict.fromkeys(RunState, 0)
    for run in campaign.runs:
        counts[note_of(run, states).state] += 1
    return {state: count for state, count in counts.items() if count}


def unfinished(campaign: Campaign, states: Mapping[str, RunNote]) -> list[tuple[Run, RunNote]]:
    """Return the runs that did not finish though they were needed, in the order of the plan."""
    noted = [(run, note_of(run, states)) for run in campaign.runs]
    return [(run, note) for run, note in noted if not note.state.is_settled]
