"""Every path inside a campaign folder; nobody else joins them by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIO_OUTPUT = "fio.json"
JOB_FILE = "job.fio"
DD_OUTPUT = "dd.txt"
DD_COMMAND = "command.txt"
STDERR = "stderr"
SAMPLES = "device.log"
COMPRESSED = ".zst"


@dataclass(frozen=True)
class RunFolder:
    """The raw files of one run.

    Attributes:
        path: ``<campaign>/runs/<run id>``.
    """

    path: Path

    @property
    def job_file(self) -> Path:
        """The job file exactly as fio read it."""
        return self.path / JOB_FILE

    @property
    def fio_output(self) -> Path:
        """What fio wrote with ``--output``."""
        return self.path / FIO_OUTPUT

    @property
    def dd_output(self) -> Path:
        """What dd wrote to standard error: its only report."""
        return self.path / DD_OUTPUT

    @property
    def dd_command(self) -> Path:
        """The dd command, quoted for a shell."""
        return self.path / DD_COMMAND

    @property
    def stderr(self) -> Path:
        """Standard error of fio."""
        return self.path / STDERR

    @property
    def status(self) -> Path:
        """How the run ended; written last, so that its presence means the rest is complete."""
        return self.path / "status.json"

    @property
    def facts(self) -> Path:
        """The volume as it was right before the run."""
        return self.path / "facts.json"

    @property
    def samples(self) -> Path:
        """The host's own counters beside the run, as its kernel tells them; compressed later."""
        return self.path / SAMPLES

    @property
    def attempts(self) -> Path:
        """Earlier attempts that did not finish."""
        return self.path / "attempts"


@dataclass(frozen=True)
class ProbeFolder:
    """The raw files of one cold-volume probe.

    Attributes:
        path: ``<campaign>/probe/<role>``.
    """

    path: Path

    @property
    def result(self) -> Path:
        """What was found; written last, so that its presence means the rest is complete."""
        return self.path / "probe.json"

    def step(self, name: str) -> RunFolder:
        """Return the folder of one of its fio processes."""
        return RunFolder(self.path / name)


@dataclass(frozen=True)
class Layout:
    """A campaign folder.

    Attributes:
        root: the folder itself.
    """

    root: Path

    @property
    def campaign(self) -> Path:
        """The resolved plan and its provenance."""
        return self.root / "campaign.json"

    @property
    def consent(self) -> Path:
        """Signature of the plan by the user who made it."""
        return self.root / "consent.json"

    @property
    def journal(self) -> Path:
        """One line for each state change of a run."""
        return self.root / "journal.jsonl"

    @property
    def journal_bytes(self) -> int:
        """How long the journal is, which grows with every change of state; 0 without one."""
        return self.journal.stat().st_size if self.journal.exists() else 0

    @property
    def lock(self) -> Path:
        """Held while a campaign runs."""
        return self.root / ".lock"

    @property
    def controller_log(self) -> Path:
        """Progress of the controllers that ran the campaign, for people."""
        return self.root / "controller.log"

    @property
    def runs(self) -> Path:
        """One folder for each run."""
        return self.root / "runs"

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
