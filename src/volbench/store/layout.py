"""Paths of the files in a campaign folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from volbench.errors import InputError
from volbench.store.held_folder import HeldPath, Identity

FIO_OUTPUT = "fio.json"
JOB_FILE = "job.fio"
STDERR = "stderr"
SAMPLES = "device.log"
PROCESSES = "processes.log"
COMPRESSED = ".zst"
STATUS = "status.json"
# Files that record the checksums of the others in their folder
UNCHECKED = frozenset({STATUS, "probe.json"})
# Files and folders of a campaign that cannot be derived again
RAW = {"campaign.json", "consent.json", "journal.jsonl", "controller.log", "marks.jsonl"}
RAW |= {"cluster-marks.txt", "hosts", "inputs", "probe", "runs", ".lock"}

_MAX_DEPTH = 100  # Python's own walk ends at some 1,000. Noticed by: test_campaign_list.py


@dataclass(frozen=True)
class RunFolder:
    """The raw files of one run."""

    path: Path  # ``<campaign>/runs/<run id>``

    @property
    def job_file(self) -> Path:
        """Job file as read by fio."""
        return self.path / JOB_FILE

    @property
    def fio_output(self) -> Path:
        """Output of fio (``--output``)."""
        return self.path / FIO_OUTPUT

    @property
    def prerun_notes(self) -> Path:
        """Fio's lines on the start gate, which it mixes into its output."""
        return self.path / "prerun.txt"

    @property
    def stderr(self) -> Path:
        """Standard error of fio."""
        return self.path / STDERR

    @property
    def status(self) -> Path:
        """Outcome of the run; written last, so that it marks the folder as complete."""
        return self.path / STATUS

    @property
    def facts(self) -> Path:
        """State of the volume right before the run."""
        return self.path / "facts.json"

    @property
    def samples(self) -> Path:
        """Kernel counters of the host, sampled during the run; compressed afterwards."""
        return self.path / SAMPLES

    @property
    def processes(self) -> Path:
        """I/O of the processes of a watched host, in the folder of its first disk."""
        return self.path / PROCESSES

    @property
    def attempts(self) -> Path:
        """Earlier, unfinished attempts."""
        return self.path / "attempts"


@dataclass(frozen=True)
class ProbeFolder:
    """The raw files of one cold-volume probe."""

    path: Path  # ``<campaign>/probe/<role>``

    @property
    def result(self) -> Path:
        """Result of the probe; written last, so that it marks the folder as complete."""
        return self.path / "probe.json"

    def step(self, name: str) -> RunFolder:
        """Return the folder of a fio process of the probe."""
        return RunFolder(self.path / name)


@dataclass(frozen=True)
class Layout:
    """A campaign folder."""

    root: Path  # the folder itself
    made: Identity | None = field(default=None, compare=False)  # of a folder that this process made

    def __post_init__(self) -> None:
        """Make all paths of the campaign follow the folder while it is held; see `HeldPath`."""
        object.__setattr__(self, "root", HeldPath(self.root))

    @property
    def campaign(self) -> Path:
        """Resolved plan and its provenance."""
        return self.root / "campaign.json"

    @property
    def consent(self) -> Path:
        """Signature of the plan by its author."""
        return self.root / "consent.json"

    @property
    def journal(self) -> Path:
        """Journal, with one line per state change."""
        return self.root / "journal.jsonl"

    @property
    def journal_bytes(self) -> int:
        """Size of the journal, which grows with each state change; 0 if missing."""
        return self.journal.stat().st_size if self.journal.exists() else 0

    @property
    def lock(self) -> Path:
        """Lock file, held while a campaign runs."""
        return self.root / ".lock"

    @property
    def marks(self) -> Path:
        """Marks of the user during a watch, which copies them into its logs."""
        return self.root / "marks.jsonl"

    @property
    def cluster_marks(self) -> Path:
        """Marks by which a cluster tells the folder that continued a campaign from its copies."""
        return self.root / "cluster-marks.txt"

    @property
    def controller_log(self) -> Path:
        """Human-readable progress log of all controllers of the campaign."""
        return self.root / "controller.log"

    @property
    def live_rates(self) -> Path:
        """Rates of active runs; missing once the campaign has ended."""
        return self.root / ".rates.json"

    def host_log(self, host: str) -> Path:
        """Return the log of everything that concerns one host of an inventory."""
        return self.root / "hosts" / f"{host}.log"

    @property
    def runs(self) -> Path:
        """Parent of the run folders."""
        return self.root / "runs"

    @property
    def inputs(self) -> Path:
        """Logs that runs replay, each named by its SHA-256; missing if there are none."""
        return self.root / "inputs"

    @property
    def tables(self) -> Path:
        """Derived frames; may be deleted."""
        return self.root / "tables"

    @property
    def report(self) -> Path:
        """Derived pages; may be deleted."""
        return self.root / "report"

    def run(self, run_id: str) -> RunFolder:
        """Return the folder of one run."""
        return RunFolder(self.runs / run_id)

    def probe(self, role: str) -> ProbeFolder:
        """Return the folder of the cold-volume probe of one role's volume."""
        return ProbeFolder(self.root / "probe" / role)


def key_file() -> Path:
    """Return the path of the user's key (XDG Base Directory Specification, state)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    state = Path(named) if named.startswith("/") else Path.home() / ".local" / "state"
    return state / "volbench" / "key"


def results_cache() -> Path:
    """Return the cache of imported results (XDG Base Directory Specification, cache)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(named) if named.startswith("/") else Path.home() / ".cache"
    return cache / "volbench" / "results"


def walk(
    path: Path, *, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield folder, names of folders in it and names of files, as `os.walk` does."""
    for folder, below, files in os.walk(path, onerror=onerror):
        if len(Path(folder).parts) - len(path.parts) > _MAX_DEPTH:
            message = f"folders are nested more than {_MAX_DEPTH} deep in {path}"
            raise InputError(message, hint="name the folder with the results")
        yield folder, below, files
