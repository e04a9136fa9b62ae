"""``until: steady`` on simulated volumes whose speed changes as their scenarios say."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.engine.campaign.virtual_runs import virtual_watch
from tests.extensions.lab.silent_export import silent_export
from tests.fio.runs import section
from tests.planned import planned_run
from volbench.engine.guard.volume_targets import find_volume
from volbench.engine.hosts.connected_host import this_machine
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.run_once import Attempt, RunOutcome, execute_run
from volbench.engine.run.stop_request import StopRequest
from volbench.engine.run.stop_when_steady import SteadyWatch
from volbench.execute.local import LocalExecutor
from volbench.extensions.lab.scenario import Scenario, load_scenario
from volbench.extensions.lab.server import serve
from volbench.ingest.run_files import read_run_output, read_status
from volbench.model.campaign.event import Event, Progress, RunProgress
from volbench.model.campaign.planned_run import Run, RunState
from volbench.model.profile.profile_settings import Until
from volbench.model.results.result import Direction
from volbench.store.layout import RunFolder

SERVICE = "service: {read: 4ms, write: 4ms, slots: 4}"
RISING = (
    f"name: rising\nsize: 4m\nblock: 64k\n{SERVICE}\nfirst_touch: {{write: 50ms}}\n"
    "limits: {iops: 200}\n"  # kept on a busy machine too, where a latency alone is not
)
SLOW = "service: {read: 20ms, write: 20ms, slots: 4}"  # a busy machine keeps up with this one
WRITES: dict[str, str | int] = {"rw": "randwrite", "bs": 4096, "iodepth": 4, "time_based": 1}
FALLING = f"name: falling\nsize: 4m\nrestored: true\n{SLOW}\ndrift: -95%\n"


@dataclass
class Done:
    """A Run that was to go on until it is steady."""

    end: RunOutcome
    run: Run
    folder: RunFolder
    notes: list[str]

    @property
    def status(self) -> dict[str, object]:
        """What was noted of it."""
        status = read_status(self.folder)
        assert status
        return status.model_dump()

    @property
    def verdict(self) -> object:
        """The last judgement."""
        return json.loads(json.dumps(self.status["until"]))["verdict"]


@contextmanager
def in_virtual_time(scenario: Scenario, _folder: Path) -> Iterator[str]:
    """Let a simulated volume answer at once; yield its address."""
    with virtual_watch(scenario):
        yield silent_export()


@contextmanager
def in_real_time(scenario: Scenario, folder: Path) -> Iterator[str]:
    """Serve a simulated volume to fio; yield its address."""
    with serve(scenario, folder / "lab") as volume:
        yield volume.uri


def run_until(
    scenario: str,
    tmp_path: Path,
    *,
    runtime_s: int,
    on_note: Callable[[str, StopRequest], None] = lambda _note, _stop: None,
    served: Callable[[Scenario, Path], AbstractContextManager[str]] = in_virtual_time,
) -> Done:
    """Write to a simulated volume until a window of ten seconds is steady."""
    executor, stop, notes = LocalExecutor(), StopRequest(), list[str]()
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()

    def listen(event: Event) -> None:
        if isinstance(event, RunProgress):
            notes.append(event.progress.note)
            on_note(event.progress.note, stop)

    with served(load_scenario(scenario, path="volume.yaml"), tmp_path) as uri:
        run = planned_run(
            find_volume(executor, role="data", target=uri),
            section(**WRITES, runtime=f"{runtime_s}s"),
            device_sample_s=0,
            until=Until(window_s=10, block_s=1),
        )
        attempt = Attempt(
            this_machine(fio=shutil.which("fio") or ""),
            run,
            RunDirectory(executor, folder),
            deadline_s=runtime_s + 60,
            listener=listen,
            stop=stop,
        )
        end = execute_run(attempt)
    return Done(end, run, folder, notes)


@pytest.mark.parametrize(
    "served", [in_virtual_time, pytest.param(in_real_time, marks=pytest.mark.slow)]
)
def test_run_ends_when_the_volume_is_warm(
    tmp_path: Path, served: Callable[[Scenario, Path], AbstractContextManager[str]]
) -> None:
    """A volume that warms up for a few seconds ends a run of five minutes orderly, with its data.

    fio is ended by SIGINT, which it tells with exit status 128; it still writes result and logs.
    """
    done = run_until(RISING, tmp_path, runtime_s=300, served=served)
    assert done.end == RunOutcome(RunState.FINISHED)
    assert done.status["ending"] == "steady"
    assert done.status["exit_status"] == 128
    assert done.verdict == "steady"
    (job,) = read_run_output(done.run, done.folder).jobs
    written = job.direction(Direction.WRITE)
    assert written is not None
    assert 10 < written.runtime_s < 200
    assert len(list(done.folder.path.glob("series_*.log"))) >= 3
    assert done.notes[0] == "until steady: watching"
    assert done.notes[-1] == "until steady: now steady"


def test_run_on_a_falling_volume_reaches_its_deadline(tmp_path: Path) -> None:
    """A rate that falls by a fifth in each window is no end; that it was not steady is noted."""
    done = run_until(FALLING, tmp_path, runtime_s=60)
    assert done.end == RunOutcome(RunState.FINISHED)
    assert done.status["ending"] == "itself"
    assert done.status["exit_status"] == 0
    assert done.verdict in {"drifting", "stepped", "noisy"}
    assert any("until steady: now" in note for note in done.notes)


@pytest.mark.slow
def test_stop_of_the_user_stays_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C while it waits for steadiness does not count as done."""

    def stop_soon(note: str, stop: StopRequest) -> None:
        if note and not stop.requested:
            stop.request()

    done = run_until(RISING, tmp_path, runtime_s=300, on_note=stop_soon)
    assert done.end.state is RunState.INTERRUPTED
    assert done.status["ending"] == "stopped"
    assert done.verdict == "too-short"


def test_a_failing_volume_is_not_steady(tmp_path: Path) -> None:
    """A server that goes away fails the run, however even the rate was before."""
    pids: list[int] = []

    def end_server(_note: str, _stop: StopRequest) -> None:
        pidfile = tmp_path / "lab" / "nbdkit.pid"
        if not pids and len(list(pidfile.parent.glob("nbdkit.pid"))) == 1:
            pids.append(int(pidfile.read_text()))
            LocalExecutor().run(["kill", "-KILL", str(pids[0])])

    done = run_until(RISING, tmp_path, runtime_s=300, on_note=end_server, served=in_real_time)
    assert done.end.state is RunState.FAILED
    assert done.end.reason


def glances(rates: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Iterator[Progress]:
    """Yield two glances a second with these write IOPS."""
    for number, rate in enumerate(rates, start=1):
        yield Progress(elapsed_s=number / 2, write_iops=float(rate))


def steady_at(watch: SteadyWatch, all_glances: Iterator[Progress]) -> float:
    """Return when a process would have been ended; infinite for never."""
    for glance in all_glances:
        watch.feed(glance)
        if watch.is_steady:
            return glance.elapsed_s
    return math.inf


def test_climb_is_watched_until_the_plateau_fills_the_window() -> None:
    """A rise of a minute is steady one window later, not earlier and not much later."""
    random = np.random.default_rng(1)
    rates = np.minimum(np.arange(1.0, 601) * 500 / 120, 500)
    rates *= 1 + 0.02 * random.standard_normal(600)
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert 90 <= steady_at(watch, glances(rates)) <= 140


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_decline_is_never_steady(seed: int) -> None:
    """A volume that loses a quarter in each window is watched to its deadline."""
    random = np.random.default_rng(seed)
    rates = 1000 * 0.75 ** (np.arange(600.0) / 120)
    rates *= 1 + 0.02 * random.standard_normal(600)
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert steady_at(watch, glances(rates)) == math.inf
    assert "drifting" in watch.words or "stepped" in watch.words
    assert watch.record["verdict"] in {"drifting", "stepped", "noisy"}


def test_window_has_to_be_full() -> None:
    """Half a window of even rates says nothing yet, and silence of fio counts for nothing."""
    watch = SteadyWatch(Until(window_s=60, block_s=5))
    assert steady_at(watch, glances(np.full(60, 500.0))) == math.inf
    assert watch.verdict is None
    assert watch.words == "until steady: watching"
    watch.feed(Progress(elapsed_s=31.0))
    watch.feed(Progress(elapsed_s=31.5, state="layout", write_iops=9.0))
    assert watch.record == {"verdict": "too-short"}
    assert steady_at(watch, glances(np.full(60, 500.0))) == math.inf


def test_reads_and_writes_are_judged_together() -> None:
    """A mix whose parts trade places is steady in sum."""
    watch = SteadyWatch(Until(window_s=20, block_s=2))
    for number in range(1, 61):
        share = number / 60
        watch.feed(
            Progress(elapsed_s=number / 2, read_iops=500 * share, write_iops=500 * (1 - share))
        )
    assert watch.is_steady
    assert watch.record["iops"] == pytest.approx(500)
