"""Tables for a terminal: frames, profiles and plans enter, rich tables leave.

Numbers are for people (three digits, SI units); the exact ones are in the exported frames. What is
not told reads ``n/a``. Nothing is cut off when the output is piped.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from volbench.model.campaign.planned_run import Campaign, Run, RunState
from volbench.model.frames.columns import LABEL_PREFIX
from volbench.model.profile.profile_model import Phase, Profile
from volbench.present.formatting import (
    MISSING,
    Row,
    flag,
    job_label,
    latency,
    pattern,
    printable,
    records,
    shown,
    size,
    text,
    whole,
)
from volbench.present.terminal.facts_text import facts_text
from volbench.present.terminal.outcome import StateNote, first_line
from volbench.units import (
    format_count,
    format_duration,
    format_latency,
    format_rate,
    format_size,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "facts_table",
    "facts_text",
    "print_rows",
    "profile_table",
    "profiles_table",
    "runs_table",
    "show_table",
    "states_table",
    "summary_table",
    "text_table",
]

STATE_STYLES = {
    RunState.FINISHED.value: "green",
    RunState.FAILED.value: "bold red",
    RunState.INTERRUPTED.value: "yellow",
}

_BOX = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_BRIEF_OPTIONS = ("rw", "bs", "iodepth", "direct", "numjobs")
_STATISTICS = ("mean", "p50", "p99", "max")


def summary_table(
    summary: pd.DataFrame,
    *,
    states: Mapping[str, StateNote] | None = None,
    doubts: Mapping[str, str] | None = None,
) -> Table:
    """Return the results, a row per Run, group and direction, about 110 columns wide.

    Args:
        summary: the summary frame.
        states: run id to its state; Runs that left no numbers get a row too, and the caption
            says why they failed.
        doubts: run id to how many Findings doubt it, as text; no column without any.
    """
    rows, states, doubts = records(summary), dict(states or {}), dict(doubts or {})
    extra = _distinguishing(rows)
    table = _table(
        *(name.removeprefix(LABEL_PREFIX) for name in extra), "job", "rw", "bs", "depth", "direct"
    )
    for column in table.columns[len(extra) + 1 :]:
        column.no_wrap = True
    for column in table.columns[-3:-1]:
        column.justify = "right"
    for heading in ("IOPS", "bandwidth", *(f"lat {name}" for name in _STATISTICS)):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    if doubts:
        table.add_column("doubts", justify="right", no_wrap=True)
    for row in rows:
        marks = [doubts.get(text(row, "run"), "")] if doubts else []
        left = (text(row, name, missing=MISSING) for name in extra)
        _add(table, *left, *_result_cells(row), *marks)
    told = {str(row.get("run")) for row in rows}
    blanks = [MISSING] * (len(table.columns) - len(extra) - 2 - bool(doubts))
    for run_id, note in states.items():
        if run_id not in told and not note.state.is_settled:
            unknown = [MISSING] * len(extra)
            _add(table, *unknown, run_id, *blanks, _state(note.state.value))
    table.caption = _caption(rows, states, doubts)
    return table


def profile_table(profile: Profile) -> Table:
    """Return the jobs of a profile as they are asked for."""
    table = _table("job", "role", "tool", "phase", "options", "note")
    for job in profile.jobs:
        options = {**profile.defaults, **job.options}
        brief = _brief({name: value for name, value in options.items() if value is not None})
        if job.sections:
            brief += f" ({len(job.sections)} sections)"
        cells = (job.name, job.role, job.tool.value, job.phase.value, brief, job.note)
        _add(table, *cells)
    return table


def profiles_table(profiles: Iterable[Profile]) -> Table:
    """Return a list of profiles: name, number of jobs, description."""
    table = _table("profile", "jobs", "description")
    table.columns[1].justify = "right"
    for profile in profiles:
        description = " ".join(profile.description.split())
        _add(table, profile.name, str(len(profile.jobs)), description)
    return table


def runs_table(
    campaign: Campaign,
    *,
    expected_s: Mapping[str, float] | None = None,
    written_bytes: Mapping[str, int] | None = None,
) -> Table:
    """Return the plan, a row per Run in the order they run.

    Args:
        campaign: the plan.
        expected_s: run id to the expected length; ``n/a`` where unknown, no column without it.
        written_bytes: run id to the bytes it would write; the same.
    """
    table = _table("#", "run", "job", "volume", "phase", "options")
    table.columns[0].justify = "right"
    for heading, told in (("time", expected_s), ("writes", written_bytes)):
        if told is not None:
            table.add_column(heading, justify="right", no_wrap=True)
    for place, run in enumerate(campaign.runs, start=1):
        cells = [str(place), run.id, run.job, f"{run.volume.role}: {run.volume.target}"]
        cells += [run.phase.value, _run_brief(run)]
        if expected_s is not None:
            cells.append(_told(expected_s.get(run.id), format_duration))
        if written_bytes is not None:
            cells.append(_told(written_bytes.get(run.id), format_size))
        _add(table, *cells)
    table.caption = _plan_caption(campaign, expected_s=expected_s, written_bytes=written_bytes)
    return table


def states_table(states: Mapping[str, StateNote]) -> Table:
    """Return Runs with their state and the reason, a row each; rows of a reason stay apart."""
    table = _table("run", "state", "reason")
    for run_id, note in states.items():
        _add(table, run_id, _state(note.state.value), note.reason.strip())
    return table


def facts_table(title: str, facts: Mapping[str, object]) -> Table:
    """Return facts about a host or a volume, a row each."""
    table = _table("fact", "value")
    table.title, table.title_justify = Text(printable(title), style="bold"), "left"
    for label, value in facts_text(facts).items():
        _add(table, label, value)
    return table


def show_table(table: Table, *, stream: TextIO | None = None) -> None:
    """Print a table: fitted to a terminal, at full width and without colour to a pipe.

    Args:
        table: what to print.
        stream: standard output when None.
    """
    stream = sys.stdout if stream is None else stream
    terminal = stream.isatty()
    console = Console(file=stream, force_terminal=None if terminal else False)
    fit = Measurement.get(console, console.options.update(width=100_000), table)
    width = max(console.width, fit.minimum) if terminal else max(fit.maximum, _caption_width(table))
    wide = Console(file=stream, force_terminal=None if terminal else False, width=width)
    wide.print(table, crop=False)


def _caption_width(table: Table) -> int:
    """Return the length of the longest line below or above a table."""
    around = [part for part in (table.title, table.caption) if isinstance(part, Text)]
    return max((line.cell_len for part in around for line in part.split()), default=0)


def print_rows(rows: Sequence[Mapping[str, str]], *, stream: TextIO) -> None:
    """Print rows of text under the keys they share, in the order of the first row."""
    headings = list(dict.fromkeys(key for row in rows for key in row))
    table = _table(*headings)
    for row in rows:
        _add(table, *(row.get(heading, MISSING) for heading in headings))
    show_table(table, stream=stream)


def text_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: Collection[str] = (),
    caption: str = "",
) -> Table:
    """Return rows of text, aligned right but for the columns of words.

    Args:
        headings: a name for each column.
        rows: a text for each column.
        words: the headings of columns that hold words.
        caption: below the table.
    """
    table = _table(*headings)
    for column, heading in zip(table.columns, headings, strict=True):
        column.justify, column.no_wrap = "left" if heading in words else "right", True
    for row in rows:
        _add(table, *row)
    table.caption = Text(printable(caption), style="") if caption else None
    return table


def _table(*headings: str) -> Table:
    """Return an empty table whose cells are plain text."""
    table = Table(box=_BOX, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")
    return table


def _add(table: Table, *cells: str | Text) -> None:
    """Add a row of plain text: brackets in a name are no markup, escapes no commands."""
    table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in cells))


def _distinguishing(rows: Sequence[Row]) -> list[str]:
    """Return the identity columns that tell rows apart beyond the job."""
    labels = dict.fromkeys(name for row in rows for name in row if name.startswith(LABEL_PREFIX))
    columns = ("campaign", "host", *labels, "client", "profile", "role", "repeat")
    return [name for name in columns if len({str(row.get(name)) for row in rows}) > 1]


def _result_cells(row: Row) -> list[str | Text]:
    """Return the cells of one result from the job to the status."""
    phase = text(row, "phase", missing=Phase.MEASURED.value)
    cells: list[str | Text] = [
        job_label(row) + ("" if phase == Phase.MEASURED.value else f" ({phase})"),
        pattern(row),
        size(row, "block_bytes"),
        whole(row, "iodepth"),
        flag(row, "direct"),
        shown(row, "iops", format_count),
        shown(row, "bw_bytes_per_s", format_rate),
    ]
    for statistic in _STATISTICS:
        found = latency(row, statistic)
        cells.append(format_latency(found.seconds) + ("*" if found.is_completion else ""))
    cells.append(_state(text(row, "status", missing=MISSING)))
    return cells


def _state(state: str) -> Text:
    return Text(state, style=STATE_STYLES.get(state, ""))


def _caption(
    rows: Sequence[Row], states: Mapping[str, StateNote], doubts: Mapping[str, str]
) -> Text | None:
    """Return what the reader must know about the rows: stand-ins, doubts, why Runs failed."""
    lines = []
    if doubts:
        worst = ", ! an invalid one" if any("!" in mark for mark in doubts.values()) else ""
        lines.append(f"doubts: Findings that put a number in doubt{worst}; see volbench check")
    if any(latency(row, statistic).is_completion for row in rows for statistic in _STATISTICS):
        lines.append("* completion latency; the tool told no total latency")
    for run_id, note in states.items():
        if note.state in (RunState.FAILED, RunState.INTERRUPTED):
            lines.append(f"{run_id} {note.state.value}: {first_line(note.reason)}")
    left_out = Counter(
        first_line(note.reason) for note in states.values() if note.state is RunState.NOT_NEEDED
    )
    for reason, count in left_out.items():
        what = "1 Run was" if count == 1 else f"{count} Runs were"
        lines.append(f"{what} not needed: {reason}")
    return Text(printable("\n".join(lines)), style="") if lines else None


def _told(value: float | None, format_value: Callable[[float], str]) -> str:
    """Return a number in words, ``n/a`` for None or NaN."""
    return MISSING if value is None or math.isnan(value) else format_value(value)


def _run_brief(run: Run) -> str:
    """Return a Run's main options; those of several sections are counted, not listed."""
    first = _brief(run.effective(run.sections[0]))
    more = len(run.sections) - 1
    return f"{first} (+{more} sections)" if more else first


def _brief(options: Mapping[str, str]) -> str:
    """Return the options that shape a result, such as ``randwrite bs=4k iodepth=16``."""
    parts = []
    for name in _BRIEF_OPTIONS:
        value = options.get(name)
        if value is None:
            continue
        if name == "bs" and value.isdigit():
            value = format_size(int(value))
        parts.append(value if name == "rw" else f"{name}={value}")
    return " ".join(parts)


def _plan_caption(
    campaign: Campaign,
    *,
    expected_s: Mapping[str, float] | None,
    written_bytes: Mapping[str, int] | None,
) -> Text:
    """Return the sums of a plan."""
    measured = sum(run.phase is Phase.MEASURED for run in campaign.runs)
    parts = [f"{len(campaign.runs)} Runs, {measured} of them measured", f"seed {campaign.seed}"]
    # Runs of one step go on side by side: their times don't add up.
    if expected_s and not any(run.step for run in campaign.runs):
        open_end = campaign.rounds or any(run.until for run in campaign.runs)
        word = "at most" if open_end else "about"
        parts.append(f"{word} {format_duration(sum(expected_s.values()))}")
    if written_bytes:
        parts.append(f"writes about {format_size(sum(written_bytes.values()))}")
    return Text("; ".join(parts), style="")
