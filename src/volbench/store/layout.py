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


class _Inside:
    """A path in a folder of a campaign, which is an attribute of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: RunFolder | ProbeFolder | Layout, _kind: object) -> Path:
        return (folder.root if isinstance(folder, Layout) else folder.path) / self._name


@dataclass(frozen=True)
class RunFolder:
    """The raw files of one run."""

    path: Path  # ``<campaign>/runs/<run id>``

    job_file = _Inside(JOB_FILE)  # Job file as read by fio
    fio_output = _Inside(FIO_OUTPUT)  # Output of fio (``--output``)
    # Fio's lines on the start gate, which it mixes into its output
    prerun_notes = _Inside("prerun.txt")
    stderr = _Inside(STDERR)  # Standard error of fio
    # Outcome of the run; written last, so that it marks the folder as complete
    status = _Inside(STATUS)
    facts = _Inside("facts.json")  # State of the volume right before the run
    # Kernel counters of the host, sampled during the run; compressed afterwards
    samples = _Inside(SAMPLES)
    # I/O of the processes of a watched host, in the folder of its first disk
    processes = _Inside(PROCESSES)
    attempts = _Inside("attempts")  # Earlier, unfinished attempts


@dataclass(frozen=True)
class ProbeFolder:
    """The raw files of one cold-volume probe."""

    path: Path  # ``<campaign>/probe/<role>``

    # Result of the probe; written last, so that it marks the folder as complete
    result = _Inside("probe.json")

    def step(self, name: str) -> RunFolder:
        """Return the folder of a fio process of the probe."""
        return RunFolder(self.path / name)


@dataclass(frozen=True)
class Layout:
    """A campaign folder."""

    root: Path  # the folder itself
    made: Identity | None = field(default=None, compare=False)  # of a folder that this process made

    campaign = _Inside("campaign.json")  # Resolved plan and its provenance
    consent = _Inside("consent.json")  # Signature of the plan by its author
    journal = _Inside("journal.jsonl")  # Journal, with one line per state change
    lock = _Inside(".lock")  # Lock file, held while a campaign runs
    # Marks of the user during a watch, which copies them into its logs
    marks = _Inside("marks.jsonl")
    # Marks by which a cluster tells the folder that continued a campaign from its copies
    cluster_marks = _Inside("cluster-marks.txt")
    # Human-readable progress log of all controllers of the campaign
    controller_log = _Inside("controller.log")
    live_rates = _Inside(".rates.json")  # Rates of active runs; missing once the campaign has ended
    runs = _Inside("runs")  # Parent of the run folders
    # Logs that runs replay, each named by its SHA-256; missing if there are none
    inputs = _Inside("inputs")
    tables = _Inside("tables")  # Derived frames; may be deleted
    report = _Inside("report")  # Derived pages; may be deleted

    def __post_init__(self) -> None:
        """Make all paths of the campaign follow the folder while it is held; see `HeldPath`."""
        object.__setattr__(self, "root", HeldPath(self.root))

    @property
    def journal_bytes(self) -> int:
        """Size of the journal, which grows with each state change; 0 if missing."""
        return self.journal.stat().st_size if self.journal.exists() else 0

    def host_log(self, host: str) -> Path:
        """Return the log of everything that concerns one host of an inventory."""
        return self.root / "hosts" / f"{host}.log"

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
