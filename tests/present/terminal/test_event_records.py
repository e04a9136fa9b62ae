"""Stream of events for schedulers: one JSON object per line, as documented."""

import io
import json
import re
from pathlib import Path
from typing import get_args

from tests.present.terminal.campaign_of_two_runs import CAMPAIGN, FIRST, STARTED
from volbench.errors import TransportError
from volbench.model.campaign import event as events
from volbench.model.campaign.event import (
    CampaignEnded,
    Event,
    HostBack,
    HostSilent,
    Notice,
    Progress,
    RunEnded,
    RunProgress,
    RunsNotNeeded,
    RunStarted,
)
from volbench.model.campaign.planned_run import RunState
from volbench.present.terminal.event_records import (
    EventStream,
    error_record,
    event_record,
    results_record,
)

PAGE = Path(__file__).parents[3] / "docs/reference/events.md"
EXAMPLES: list[Event] = [
    STARTED,
    RunStarted(FIRST, 60.0),
    RunProgress(FIRST, Progress(10.0)),
    RunEnded(FIRST, RunState.FAILED, "no"),
    RunsNotNeeded(CAMPAIGN.runs, "steady"),
    Notice("late"),
    HostSilent("vm1", 12.0),
    HostBack("vm1", 30.0),
    CampaignEnded(("a",), (), ()),
]


def documented() -> dict[str, set[str]]:
    """Return the fields of each event in the reference."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        re.findall(r"`([^`]+)`", section.splitlines()[0])[0]: set(
            re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
        )
        for section in sections
        if section.startswith("`")
    }


def test_fields_are_those_of_the_reference() -> None:
    """Schedulers rely on them; a new kind of event needs an example."""
    assert {type(event) for event in EXAMPLES} == set(get_args(events.Event))
    records = [event_record(event) for event in EXAMPLES]
    records += [error_record(TransportError("gone")), results_record([])]
    common = {"event", "time_utc"}
    run = {"run", "host", "client", "step", "profile", "job", "phase", "repeat"}
    found = {
        str(record["event"]): set(record) - common - (run if "job" in record else set())
        for record in records
    }
    assert found == documented()


def test_lines_are_json_and_progress_is_thinned() -> None:
    """A line at once for a new state of a run, then one every few seconds."""
    now_s = 0.0
    stream = io.StringIO()
    listener = EventStream(stream, clock=lambda: now_s)
    for state, seconds in (("layout", 0.1), ("run", 0.1), ("run", 1.0), ("run", 5.0)):
        now_s += seconds
        listener(RunProgress(FIRST, Progress(now_s, state=state)))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["state"] for line in lines] == ["layout", "run", "run"]
    assert all(line["time_utc"].endswith("Z") for line in lines)
