"""Runs of the engine in virtual time: a simulated volume answers instead of fio, at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from types import SimpleNamespace
from unittest import mock

from tests.execute.fake import FakeProcess
from tests.extensions.lab.virtual_run import VirtualRun, VirtualVolume
from volbench.engine.run import process_watch, run_once
from volbench.engine.run.process_watch import POLL_S
from volbench.extensions.lab.scenario import Scenario
from volbench.fio.results.validation import INTERRUPTED_STATUS
from volbench.model.campaign.planned_run import Run

_STATUS_S = 0.5  # fio is started with two status lines a second


def _run_on(volume: VirtualVolume, run: Run, **changed: str) -> VirtualRun:
    (section,) = run.sections
    return volume.run(
        run.options,
        job_options={**section.options, **changed},
        name=section.name,
        sample_s=run.sample_s,
        device_sample_s=run.device_sample_s,
        seed=run.seed % 1000,
    )


def _write_files(attempt: run_once.Attempt, done: VirtualRun) -> None:
    for name, text in done.files.items():
        (attempt.directory.folder.path / name).write_text(text, encoding="utf-8")


@contextmanager
def virtual_fio(scenario: Scenario, *, interrupted: str = "") -> Iterator[None]:
    """Let each run of this process write what fio would have written on a new volume.

    Args:
        scenario: the volume.
        interrupted: beginning of the name of a run in which the user presses Ctrl-C.
    """
    volume, one_by_one = VirtualVolume(scenario), Lock()

    def start(self: run_once._Execution) -> FakeProcess:
        attempt = self._attempt
        is_interrupted = bool(interrupted) and attempt.run.id.startswith(interrupted)
        process = FakeProcess(pid=os.getpid(), exit_status=None if is_interrupted else 0)
        if not is_interrupted:
            with one_by_one:
                _write_files(attempt, _run_on(volume, attempt.run))
        attempt.on_start(process)
        attempt.directory.sync()
        if is_interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        return process

    with mock.patch.object(run_once._Execution, "start", start):  # noqa: SLF001 - the seam to fio
        yield


@dataclass
class _WatchedFio(FakeProcess):
    """fio on a new volume with status lines; each wait takes `POLL_S`, and a signal ends it."""

    scenario: Scenario = field(kw_only=True)
    attempt: run_once.Attempt = field(kw_only=True)

    def __post_init__(self) -> None:
        """Do the whole run to learn what its status lines say."""
        run = self.attempt.run.model_copy(update={"sample_s": _STATUS_S})
        done = _run_on(VirtualVolume(self.scenario), run)
        rows = [line.split(", ") for line in done.files["series_iops.1.log"].splitlines()]
        lines = {
            round((int(utc_ms) / 1000 - done.begin_utc_s) / POLL_S): (
                f"Jobs: 1 (f=1): [w(1)][5.0%][w=1KiB/s][w={iops} IOPS][eta 01m:00s]\r"
            )
            for utc_ms, iops, *_ in rows
        }
        self.steps = [lines.get(step, "") for step in range(1, round(done.elapsed_s / POLL_S) + 1)]

    @property
    def now_s(self) -> float:
        """Seconds since its start."""
        return self._step * POLL_S

    def poll(self) -> int | None:
        """Return the exit status; when it has ended, its files are there."""
        is_new = self._ended is None
        status = super().poll()
        if is_new and status is not None:
            self._leave_files()
        return status

    def signal(self, number: int) -> None:
        """End with the files of an interrupted run."""
        super().signal(number)
        self._ended = INTERRUPTED_STATUS
        self._leave_files()

    def _leave_files(self) -> None:
        volume = VirtualVolume(self.scenario)
        _write_files(
            self.attempt, _run_on(volume, self.attempt.run, runtime=f"{1000 * self.now_s:.0f}ms")
        )


@contextmanager
def virtual_watch(scenario: Scenario) -> Iterator[None]:
    """Let the one run of this process be watched in virtual time, on a new volume.

    A wait takes no time if `finish` drives the run.
    """
    started: list[_WatchedFio] = []

    def start(self: run_once._Execution) -> FakeProcess:
        started.append(_WatchedFio(scenario=scenario, attempt=self._attempt))
        return started[0]

    def monotonic() -> float:
        return started[0].now_s

    clock = SimpleNamespace(monotonic=monotonic)
    with (
        mock.patch.object(run_once._Execution, "start", start),  # noqa: SLF001 - the seam to fio
        mock.patch.object(process_watch, "time", clock),
    ):
        yield
