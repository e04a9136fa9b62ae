"""Campaign plan: an ordered list of runs, each exactly one process of fio or dd."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property

from pydantic import Field

from volbench.model.base import Count, FileName, Frozen, Seconds
from volbench.model.campaign.host import Host, Policy
from volbench.model.campaign.target import Volume
from volbench.model.profile.profile_model import Order, Phase, Start, Tool
from volbench.model.profile.profile_settings import Limits, Rounds, Until


class Section(Frozen):
    """One section of a job file.

    Attributes:
        name: header of the section.
        options: canonical options; these override those of the run.
    """

    name: str
    options: dict[str, str] = Field(default_factory=dict)


class Extent(Frozen):
    """Range of a volume that one run of a warm-up touches.

    Attributes:
        offset_bytes: start of the range.
        size_bytes: bytes transferred.
        volume_bytes: bytes that the complete warm-up covers.
        whole_bytes: capacity of the volume; 0 when unknown.
        direction: ``write``, ``read``, or ``sample`` for blocks read back at the end.
        auto: choose `numjobs` immediately before the run, from the results of earlier extents.
    """

    offset_bytes: Count
    size_bytes: Count
    volume_bytes: Count
    direction: str
    auto: bool = False
    whole_bytes: Count = 0


class ImportedJob(Frozen):
    """Entries of an imported result that form one section of a run.

    Attributes:
        name: fio's jobname.
        groupid: fio's reporting group.
        section: section of the run.
        numjobs: jobs in parallel, each with its own numbered log.
    """

    name: str
    groupid: Count
    section: str
    numjobs: Count = 1


class SourceFile(Frozen):
    """A file that was imported.

    Attributes:
        name: name in the folder of the run.
        source: path relative to the imported file or folder.
        sha256: digest of its content, which is unchanged.
    """

    name: FileName
    source: str
    sha256: str


class Imported(Frozen):
    """Part of an imported result that forms a run.

    Attributes:
        files: the result first, then its logs; logs only where `read_as` is set.
        document: index of the result among the documents in its file, from 0.
        hostname: host name of fio's client; empty where the document names none.
        port: port of fio's client.
        jobs: entries that belong to the run; all others belong to other runs.
        first_job_number: number of its first log.
        incomplete_sections: sections whose options the document does not report in full, so that
            fio's defaults cannot be assumed.
        unreported_flags: options that this version of fio omits although they may have been set.
        read_as: fio version whose log format applies to logs without a result; empty where the
            result reports it.
        folder: of the result below the imported path, without hosts and numbers of repeats.
        labels: of the result, beside those of its host.
    """

    files: tuple[SourceFile, ...]
    document: Count = 0
    hostname: str = ""
    port: Count | None = None
    jobs: tuple[ImportedJob, ...]
    first_job_number: Count = 1
    incomplete_sections: tuple[str, ...] = ()
    unreported_flags: tuple[str, ...] = ()
    read_as: str = ""
    folder: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Run(Frozen):
    """One job on one volume of one host, one repeat.

    Attributes:
        id: unique in the campaign and a folder name, such as ``001-test1-r1``.
        profile: name of the profile that defines the job.
        job: name of the job.
        volume: the volume under test.
        phase: precondition, warmup or measured.
        repeat: 1-based.
        tool: fio or dd.
        host: ``local`` for this machine.
        seed: seed of fio's random offsets.
        options: canonical options shared by all sections.
        sections: at least one.
        note: the job's remark.
        limits: declared limits of the volume.
        sample_s: seconds between points of the series; 0 for none.
        device_sample_s: seconds between samples of the kernel's counters of the device; 0 for none.
        latency_log: write a latency histogram for every point of the series.
        until: criterion that ends the run when it is steady; None to run its full length.
        pause_before_s: idle time of the volume before the run, from the end of the run before.
        extent: part of the volume that a warm-up run covers; None for other runs.
        client: number among several processes on its host, from 1; 0 for the only one.
        step: position in the plan of its host, from 1; runs of one step run at the same time.
        start: start time relative to the other runs of its step.
        start_offset_s: delay after the start of the first run of its step.
        imported: origin of its files; None for runs that volbench executed.
    """

    id: FileName
    profile: str
    job: str
    volume: Volume
    phase: Phase = Phase.MEASURED
    repeat: Count = 1
    tool: Tool = Tool.FIO
    host: str = "local"
    seed: Count = 0
    options: dict[str, str] = Field(default_factory=dict)
    sections: tuple[Section, ...]
    note: str = ""
    limits: Limits = Limits()
    sample_s: Seconds = 1.0
    device_sample_s: Seconds = 1.0
    latency_log: bool = False
    until: Until | None = None
    pause_before_s: Seconds = 0.0
    extent: Extent | None = None
    client: Count = 0
    step: Count = 0
    start: Start = Start.TOGETHER
    start_offset_s: Seconds = 0.0
    imported: Imported | None = None

    def reports_options(self, section: Section) -> bool:
        """Return whether the options of a section are known, so that fio's defaults apply."""
        return self.imported is None or section.name not in self.imported.incomplete_sections

    def has_default(self, section: Section, name: str) -> bool:
        """Return whether an option has fio's default where a section does not set it."""
        omitted = () if self.imported is None else self.imported.unreported_flags
        return self.reports_options(section) and (
            name not in omitted or name in self.effective(section)
        )

    def effective(self, section: Section) -> dict[str, str]:
        """Return the options of one section, including those of the run."""
        return {**self.options, **section.options}


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
    """A selected host that was unavailable when the campaign was planned.

    Attributes:
        host: name of the host.
        reason: cause, one sentence.
        clients: number of clients planned for it.
    """

    host: str
    reason: str
    clients: Count = 1


class Campaign(Frozen):
    """An ordered plan with all decisions made before the start.

    Attributes:
        name: name of the campaign; profile and time by default.
        created_utc: ISO 8601 with ``Z``.
        runs: runs in order of execution.
        seed: seed of shuffle and offsets, always recorded.
        order: order of the measured runs.
        on_error: continue or stop after a failed run.
        allow_destroy: devices and files that the user allowed to be overwritten, as given.
        wipe_signatures: allow these devices to hold filesystems and similar, as examined then.
        allow_shared_folder: allow root to measure in a folder writable by other users.
        command: the command line, secrets masked.
        cold_probe_roles: roles whose volumes are probed for coldness before the first run.
        hosts: hosts under test; empty for the controller's own machine.
        policy: number of hosts that must complete a run for its totals to count.
        quorum: that number when the policy is ``quorum``.
        absent: unavailable hosts that the policy tolerates.
        rounds: profile to the end condition of its rounds; the repeat of its runs is the round.
    """

    name: str
    created_utc: str
    runs: tuple[Run, ...]
    seed: Count
    order: Order = Order.LISTED
    on_error: OnError = OnError.CONTINUE
    allow_destroy: tuple[str, ...] = ()
    wipe_signatures: bool = False
    allow_shared_folder: bool = False
    command: tuple[str, ...] = ()
    cold_probe_roles: tuple[FileName, ...] = ()
    hosts: tuple[Host, ...] = ()
    policy: Policy = Policy.ALL
    quorum: Count = 0
    absent: tuple[Absent, ...] = ()
    rounds: dict[str, Rounds] = Field(default_factory=dict)

    @property
    def clients_absent(self) -> int:
        """Number of clients missing from every step from the start."""
        return sum(host.clients for host in self.absent)

    @property
    def key(self) -> str:
        """Unique key of the campaign, used as a folder name on hosts and volumes."""
        return f"{re.sub('[^0-9]', '', self.created_utc)}-{self.seed:08x}"

    @property
    def is_imported(self) -> bool:
        """Whether the runs are imported results, which cannot be executed."""
        return any(run.imported for run in self.runs)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of all labels of hosts and imported results, in order of first appearance."""
        own = (run.imported.labels for run in self.runs if run.imported)
        every = (*(host.labels for host in self.hosts), *own)
        return tuple(dict.fromkeys(name for labels in every for name in labels))

    def labels_of(self, run: Run) -> dict[str, str]:
        """Return the labels of a run: those of its host, and of the imported result."""
        host = self._host_labels.get(run.host, {})
        return {**host, **(run.imported.labels if run.imported else {})}

    @cached_property
    def _host_labels(self) -> dict[str, dict[str, str]]:
        return {host.name: host.labels for host in self.hosts}

    def ends_with(self, run: Run) -> bool:
        """Return whether a failure of this run ends the campaign; preparation runs always do."""
        return run.phase is not Phase.MEASURED or self.on_error is OnError.STOP
