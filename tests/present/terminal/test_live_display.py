"""Progress as a terminal and as a log file get it."""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest
from rich.console import Console

from tests.command_line import everything_from
from tests.present.terminal.campaign_of_two_runs import CAMPAIGN, FIRST, SECOND, STARTED, run_of
from volbench.model.campaign.event import (
    CampaignEnded,
    CampaignStarted,
    Event,
    Notice,
    Progress,
    RunEnded,
    RunProgress,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import Extent, RunState
from volbench.model.profile.profile_settings import Metric, Rounds, Track
from volbench.present.terminal.listeners import PlainProgress, listener_for
from volbench.present.terminal.live_display import LiveProgress

Clock = Callable[[], float]
Display = TypeVar("Display", LiveProgress, PlainProgress)


def after(make: Callable[[Clock], Display], events: Iterable[Event | float]) -> Display:
    """Return a display that has a clock and was told events; a number moves the clock."""
    now_s = 0.0
    progress = make(lambda: now_s)
    for event in events:
        if isinstance(event, float):
            now_s += event
        else:
            progress(event)
    return progress


def screen(events: Iterable[Event | float], *, width: int = 80) -> str:
    """Return what stands at the bottom of a screen after events."""
    console = Console(
        file=io.StringIO(), force_terminal=True, width=width, height=25, color_system=None
    )
    drawn = after(lambda clock: LiveProgress(io.StringIO(), clock=clock, console=console), events)
    sheet = Console(file=io.StringIO(), width=width, color_system=None, record=True)
    sheet.print(drawn.draw())
    return sheet.export_text()


def plain(events: Iterable[Event | float]) -> list[str]:
    """Return the lines of a log after events."""
    stream = io.StringIO()
    after(lambda clock: PlainProgress(stream, clock=clock), events)
    return stream.getvalue().splitlines()


def running(*, note: str = "", **rates: float) -> list[Event | float]:
    """Return the events of a run that told these rates ten seconds after its start."""
    reported = Progress(10.0, 60.0, "run", note=note, **rates)
    return [STARTED, RunStarted(FIRST, 60.0), 10.0, RunProgress(FIRST, reported)]


def test_time_left_is_the_sum_of_what_is_expected() -> None:
    """What is left of the run under way and the whole of those that wait add up."""
    text = screen(running())
    assert "0/2 runs, 2m 20s left" in text
    assert "10s of 1m 00s" in text
    assert "15s of 1m 00s" in screen([*running(), 5.0]), "a run that says nothing gets older"
    runs = [run_of(f"00{number}-a-r1") for number in (1, 2, 3)]
    events: list[Event | float] = [CampaignStarted(CAMPAIGN, (*runs,), {r.id: 60.0 for r in runs})]
    for run, seconds in zip(runs, (61.0, 200.0), strict=False):  # the controller was stopped once
        events += [RunStarted(run, 60.0), seconds, RunEnded(run, RunState.FINISHED)]
    assert "2/3 runs, 1m 01s left" in screen(events)


def test_of_many_runs_few_have_a_line() -> None:
    """The first of each host, one in half a minute, and each that fails."""
    runs = tuple(run_of(f"{number:03}-a-r1") for number in range(1, 31))
    events: list[Event | float] = [CampaignStarted(CAMPAIGN, runs, {})]
    for place, run in enumerate(runs):
        state = RunState.FAILED if place == 1 else RunState.FINISHED
        events += [RunStarted(run, 4.0), 4.0, RunEnded(run, state, "it broke")]
    lines = plain(events)
    assert [line.partition("/")[0] for line in lines] == ["[1", "[2", "[10", "[18", "[26"]


def test_a_step_of_several_clients_is_one_line() -> None:
    """With the range of their rates, not the sum: they may have run one after the other."""
    lost, *runs = (run_of(f"001-a-r1-vm{n}").model_copy(update={"step": 1}) for n in range(4))
    events: list[Event | float] = [CampaignStarted(CAMPAIGN, (lost, *runs), {})]
    events += [RunStarted(run, 4.0) for run in (lost, *runs)]
    events += [RunEnded(lost, RunState.FAILED, "no")]
    events += [
        RunEnded(run, RunState.FINISHED, rates=(r, 1e6))
        for run, r in zip(runs, (200.0, 90.0, 200.0), strict=True)
    ]
    failed, last = plain(events)
    assert failed.startswith("[1/4] failed 001-a-r1-vm0 after 0s: no")
    assert last.endswith("; step 1: 3 clients, 90 to 200 IOPS each")


def test_time_left_of_a_warm_up_follows_its_last_extents() -> None:
    """The extents that are done predict how long the others take, each by its bytes."""
    extent = Extent(offset_bytes=0, size_bytes=1, volume_bytes=1000, direction="write")
    runs = [
        run_of(f"00{number}-fill-r1").model_copy(
            update={"extent": extent.model_copy(update={"size_bytes": size})}
        )
        for number, size in enumerate((400, 400, 200), start=1)
    ]
    started = CampaignStarted(CAMPAIGN, tuple(runs))
    first: list[Event | float] = [started, RunStarted(runs[0], None), 40.0]
    assert "0/3 runs, - left" in screen(first)
    assert "40s of -" in screen(first)
    done: list[Event | float] = [*first, RunEnded(runs[0], RunState.FINISHED)]
    going: list[Event | float] = [*done, RunStarted(runs[1], None), 10.0]
    assert "1/3 runs, 50s left" in screen(going)
    failed: list[Event | float] = [*first, RunEnded(runs[0], RunState.FAILED, "no")]
    assert "1/3 runs, 1 failed, - left" in screen(failed)
    stopped: list[Event | float] = [*first, RunEnded(runs[0], RunState.INTERRUPTED, "no")]
    assert "1/3 runs, - left" in screen(stopped)


def test_zero_is_shown_as_zero_and_an_unknown_rate_as_a_dash() -> None:
    """A stall reads 0 IOPS; before the tool has said anything there is no number."""
    assert "0 IOPS 0 B/s" in screen(running(write_iops=0.0, write_bw_bytes_per_s=0.0))
    text = screen(running())
    assert "- IOPS" in text
    assert "0 IOPS" not in text


def test_each_busy_direction_has_its_rates_and_a_note_behind_them() -> None:
    """Reads and writes stand apart, within 80 columns."""
    noted = screen(running(write_iops=475.0, note="until steady: now drifting +14 %"))
    assert "475 IOPS -  until steady: now drifting +14 %" in noted
    writes = Progress(1.0, write_iops=950.0, write_bw_bytes_per_s=3.9e6)
    both = replace(writes, read_iops=1234.0, read_bw_bytes_per_s=5e6)
    text = screen([STARTED, RunStarted(FIRST, 60.0), RunProgress(FIRST, both)])
    assert "read 1.23k IOPS 5 MB/s  write 950 IOPS 3.9 MB/s" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_log_has_lines_for_start_and_end_of_each_run() -> None:
    """With rates or reason, and the time left; notices of one topic have one, and a count."""
    noted = Notice("cache left", topic="cache followed")
    lines = plain(
        [
            STARTED,
            RunStarted(FIRST, 60.0),
            61.0,
            RunEnded(FIRST, RunState.FINISHED, rates=(1234.0, 5e6)),
            *(noted, noted),
            RunStarted(SECOND, None),
            2.0,
            RunEnded(SECOND, RunState.FAILED, "\nfio: no space\nmore"),
            CampaignEnded((FIRST.id,), (SECOND.id,), ("x",)),
        ]
    )
    assert lines == [
        "[1/2] started 001-a-r1, about 1m 00s",
        "[1/2] finished 001-a-r1 after 1m 01s: 1.23k IOPS, 5 MB/s; about 1m 31s left",
        "note: cache left",
        "[2/2] started 002-[b]-r1, about 1m 30s",
        "[2/2] failed 002-[b]-r1 after 2s: fio: no space",
        "campaign ended: 1 finished, 1 failed, 1 not run; cache followed (2 runs)",
    ]


ROUNDS = {"p": Rounds(track=(Track(job="a", metric=Metric.IOPS),))}


def test_a_run_that_is_no_longer_needed_is_reported_and_not_counted() -> None:
    """The bar is full without it, and until then the time left is the most."""
    campaign = CAMPAIGN.model_copy(update={"rounds": ROUNDS})
    started = CampaignStarted(campaign, campaign.runs, STARTED.expected_s)
    first: list[Event | float] = [RunStarted(FIRST, 60.0), 61.0, RunEnded(FIRST, RunState.FINISHED)]
    spared = RunsNotNeeded((SECOND,), "steady state at round 5")
    assert "1/2 runs, at most 1m 31s left" in screen([started, *first])
    assert "1/1 run, at most 0s left" in screen([started, *first, spared])
    ended = CampaignEnded((FIRST.id,), (), (), (SECOND.id,))
    assert plain([started, *first, spared, ended])[-2:] == [
        "1 run is not needed: steady state at round 5",
        "campaign ended: 1 finished, 1 not needed",
    ]


def test_a_log_is_silent_for_15_s_at_most() -> None:
    """Who reads it sees that a long campaign goes on, what is left if known, and who is silent."""
    reported = RunProgress(FIRST, Progress(70.0, 600.0, "run", silent_s=42.0))
    begun: list[Event | float] = [STARTED, RunStarted(FIRST, 600.0)]
    assert len(plain([*begun, 14.0, reported, reported])) == 1
    _, line = plain([*begun, 15.0, reported, 10.0, reported])
    assert line.startswith("0 of 2 runs ended, 1 running, about 10m 20s left; ")
    assert line.endswith(" silent for 42s")
    assert len(plain([*begun, 15.0, reported, 16.0, reported])) == 3
    over = RunProgress(SECOND, Progress(9.0, None, "ended"))
    late = 20.0, RunProgress(FIRST, Progress(600.0, 600.0))
    assert plain([RunStarted(FIRST, 600.0), RunStarted(SECOND, 9.0), over, *late])[-1].endswith(
        "2 running"
    )


def test_a_notice_is_not_read_as_markup() -> None:
    """A notice is printed as it stands: brackets are kept and escapes can't act."""
    assert plain([Notice("[red]x\x1b[31m")]) == ["note: [red]x\\x1b[31m"]


@pytest.fixture
def terminal() -> Iterator[tuple[io.TextIOWrapper, Callable[[], str]]]:
    """Return a real terminal to write to, and a function that closes it and returns all it got."""
    controller, side = os.openpty()
    stream = os.fdopen(side, "w", encoding="utf-8")
    with ThreadPoolExecutor(1) as pool, stream:
        reading = pool.submit(everything_from, controller)

        def written() -> str:
            stream.close()
            return reading.result(60).decode()

        yield stream, written
        stream.close()
    os.close(controller)


def test_a_terminal_gets_bars_and_lines_that_stay(
    terminal: tuple[io.TextIOWrapper, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal bars are drawn, and what ended stays above them; no colour with NO_COLOR."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream, written = terminal
    with listener_for(stream) as listener:
        assert isinstance(listener, LiveProgress)
        for event in (STARTED, RunStarted(FIRST, 60.0), RunEnded(FIRST, RunState.FAILED, "why")):
            listener(event)
    text = written()
    assert "0/2 runs" in text
    plainly = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "[1/2] failed 001-a-r1 after 0s: why" in plainly
    assert not any(f"\x1b[{code}m" in text for code in ("31", "32", "36", "1;31"))


def test_what_cannot_draw_gets_lines(
    terminal: tuple[io.TextIOWrapper, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TERM=dumb is taken at its word; a pipe has no bars."""
    monkeypatch.setenv("TERM", "dumb")
    for stream in (terminal[0], io.StringIO()):
        with listener_for(stream) as listener:
            assert isinstance(listener, PlainProgress)


def many_running(*silent_s: float) -> list[Event | float]:
    """Return the events of runs under way on as many hosts, heard from so long ago."""
    runs = [
        run_of(f"001-a-r1-vm{number}").model_copy(update={"host": f"vm{number}", "job": "a"})
        for number in range(len(silent_s))
    ]
    campaign = CAMPAIGN.model_copy(update={"runs": tuple(runs)})
    events: list[Event | float] = [CampaignStarted(campaign, campaign.runs, {})]
    for run, silent in zip(runs, silent_s, strict=True):
        reported = Progress(10.0, 60.0, "run", read_iops=400.0, write_iops=600.0, silent_s=silent)
        events += [RunStarted(run, 60.0), RunProgress(run, reported)]
    return events


def test_many_parallel_runs_are_a_table() -> None:
    """A row for each host with its rates and its time left; those long silent stand first."""
    lines = screen(many_running(0.0, 0.0, 42.0, 0.0, 0.0, 0.0), width=100).splitlines()
    rows = [line for line in lines if line.startswith("vm")]
    assert len(rows) == 6
    assert rows[0].startswith("vm2")
    assert "42s ago" in rows[0]
    assert "1k" in rows[1]
    assert "50s" in rows[1]
    assert "now" in rows[1]
    assert "heard" not in screen(many_running(0.0, 0.0, 0.0), width=100), "a few keep a bar each"
    few = screen([*many_running(0.0, 42.0), 3.0])
    assert "vm0: running  read 400" in few
    assert "vm1: silent for 45s, before:  read 400" in few


def test_clients_of_a_step_count_once_towards_the_time_left() -> None:
    """Six hosts with 50 s left each have 50 s left, and stand in the order of the plan."""
    started, *others = many_running(*[0.0] * 6)
    assert isinstance(started, CampaignStarted)
    runs = tuple(run.model_copy(update={"step": 1}) for run in started.pending)
    together = CampaignStarted(started.campaign, runs, {run.id: 60.0 for run in runs})
    lines = screen([together, *reversed(others[::2]), *others[1::2]], width=100).splitlines()
    assert "0/6 runs, 50s left" in lines[0]
    named = [line.split()[0] for line in lines if line.startswith("vm")]
    assert named == [f"vm{number}" for number in range(6)]


def test_runs_that_do_not_fit_the_screen_are_counted() -> None:
    """A screen of 25 lines shows the first of a hundred hosts, and says how many there are."""
    text = screen(many_running(*[0.0] * 100), width=100)
    assert "and 81 more" in text
    assert len(text.splitlines()) < 25
