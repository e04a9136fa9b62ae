"""What is wanted: Profile, Job, Phase, Limits, Volume.

Options are kept canonical (see `volbench.model.profile.fio_option`): names as fio spells them,
values as they are written into a job file. None stands for "take this inherited option away".
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from volbench.model.base import Frozen
from volbench.model.catalogue.volume_type import Wanted

Options = dict[str, str | None]


class Phase(StrEnum):
    """When a Run happens: before anything, before each repeat, or as what is measured."""

    PRECONDITION = "precondition"
    WARMUP = "warmup"
    MEASURED = "measured"


class Order(StrEnum):
    """The order of the measured Runs within one repeat."""

    LISTED = "listed"
    SHUFFLED = "shuffled"


class Start(StrEnum):
    """When the clients of a campaign start a Run: at one instant, i x stagger later, or in turn."""

    TOGETHER = "together"
    STAGGERED = "staggered"
    SEQUENTIAL = "sequential"


class Tool(StrEnum):
    """The program that does the I/O."""

    FIO = "fio"
    DD = "dd"


class Limits(Frozen):
    """What the provider promises for a volume; None when nothing is declared.

    Attributes:
        iops: I/O operations a second, sustained.
        bandwidth_bytes_per_s: bytes a second, sustained.
        burst_iops: I/O operations a second while credits last.
        burst_ios: credits of a full bucket, in I/Os; they refill at `iops`.
        burst_bandwidth_bytes_per_s: bytes a second while credits last.
        burst_bytes: credits of a full bucket, in bytes; they refill at the sustained bandwidth.
        name: of the volume type they are from, such as ``aws/gp2``; empty when nobody told it.
        wanted: the type, while the size of the volume is still to be found out.
    """

    iops: float | None = None
    bandwidth_bytes_per_s: float | None = None
    burst_iops: float | None = None
    burst_ios: float | None = None
    burst_bandwidth_bytes_per_s: float | None = None
    burst_bytes: float | None = None
    name: str = ""
    wanted: Wanted | None = None


class Until(Frozen):
    """End a job when its IOPS are steady; its runtime is the deadline.

    Attributes:
        window_s: length of the window that must be steady.
        block_s: length of the blocks whose medians are judged.
    """

    window_s: float = 300.0
    block_s: float = 10.0


class Metric(StrEnum):
    """What of a job is tracked over rounds; of all directions and sections together."""

    IOPS = "iops"
    BW = "bw"
    LAT_MEAN = "lat_mean"


class Track(Frozen):
    """A tracking variable.

    Attributes:
        job: name of a measured job.
        metric: of it.
    """

    job: str
    metric: Metric

    @property
    def name(self) -> str:
        """As in a profile, such as ``r0-4k.iops``."""
        return f"{self.job}.{self.metric.value}"


class Rounds(Frozen):
    """Repeat the measured jobs until all tracking variables are steady, as SNIA's PTS says.

    Attributes:
        most: rounds after which it ends in any case.
        track: the tracking variables, one at least.
    """

    most: int = 25
    track: tuple[Track, ...]


class Outlast(Frozen):
    """Run longer than the declared burst credits of a volume last; runtime is the least.

    Attributes:
        margin: how many times as long as they are predicted to last.
        most_s: and no longer than this.
    """

    margin: float = 1.3
    most_s: float = 10800.0


class Warming(StrEnum):
    """How a warm-up job touches every block of its volume, each once."""

    WRITE = "write"
    READ = "read"
    WRITE_READ = "write-read"


class Source(Frozen):
    """Where a profile comes from.

    Attributes:
        title: the article, paper or specification.
        author: who wrote it; may be empty.
        year: None when unknown.
        url: may be empty.
    """

    title: str
    author: str = ""
    year: int | None = None
    url: str = ""


class Job(Frozen):
    """One benchmark job: one fio process, usually with one section.

    Attributes:
        name: letters, digits, ``_`` and ``-``; unique in its profile.
        role: the volume it works on, such as ``data``.
        tool: fio, or dd.
        phase: precondition, warmup or measured.
        note: a remark for the report.
        options: its own options, over the profile's defaults.
        sections: several fio sections that run together; empty for the usual single one.
        limits: its own limits; None to take the profile's.
        until: end it when it is steady; None to run its full length.
        pause_before_s: the volume is left alone so long before it starts.
        outlast: run longer than burst credits last; None to take the runtime as it is.
        warming: touch every block of the volume in extents, a Run each; None for usual jobs.
        extents: how many, about; 0 to let volbench choose.
        auto_jobs: find out how many clones a warm-up needs, extent by extent.
    """

    name: str
    role: str = "data"
    tool: Tool = Tool.FIO
    phase: Phase = Phase.MEASURED
    note: str = ""
    options: Options = Field(default_factory=dict)
    sections: dict[str, Options] = Field(default_factory=dict)
    limits: Limits | None = None
    until: Until | None = None
    pause_before_s: float = 0.0
    outlast: Outlast | None = None
    warming: Warming | None = None
    extents: int = 0
    auto_jobs: bool = False


class Profile(Frozen):
    """A benchmark as its author wrote it, with values made canonical.

    Attributes:
        name: letters, digits, ``_`` and ``-``.
        description: one paragraph.
        source: where it comes from.
        defaults: options of every fio job.
        jobs: all jobs of all phases, in file order; a matrix is already expanded.
        volumes: role to target, for roles the command line does not name.
        repeat: how often the measured jobs run.
        rounds: repeat them until they are steady instead; None for `repeat`.
        order: listed, or shuffled within each repeat.
        seed: of the shuffle and of fio's offsets; None to draw one and record it.
        limits: role to declared limits; the key ``*`` holds for every role.
        sample_s: seconds between points of a series; 0 for none.
        device_sample_s: seconds between looks at the device's own counters; 0 for none.
        latency_log: log how many I/Os took how long, at every point of a series.
        cold_probe: read a sample of blocks twice before anything is measured.
        start: when the clients start each measured job.
        stagger_s: seconds between their starts when they are staggered.
        clients: processes that run the jobs side by side, each on its own part; they are spread
            evenly over the hosts, one on each at least.
    """

    name: str
    description: str = ""
    source: Source | None = None
    defaults: Options = Field(default_factory=dict)
    jobs: tuple[Job, ...]
    volumes: dict[str, str] = Field(default_factory=dict)
    repeat: int = 1
    rounds: Rounds | None = None
    order: Order = Order.LISTED
    seed: int | None = None
    limits: dict[str, Limits] = Field(default_factory=dict)
    sample_s: float = 1.0
    device_sample_s: float = 1.0
    latency_log: bool = False
    cold_probe: bool = False
    start: Start = Start.TOGETHER
    stagger_s: float = 0.0
    clients: int = 1
