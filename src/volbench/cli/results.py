"""Results of a campaign that has ended, for people and as the last of its events."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.output import TableOutput
from volbench.cli.verb_groups import complete_hint, is_quiet
from volbench.errors import VolbenchError
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.api.many_campaigns import Dataset
    from volbench.model.campaign.planned_run import Campaign
    from volbench.present.tables.table import Table
    from volbench.present.terminal.event_records import EventStream
    from volbench.store.layout import Layout


@contextmanager
def reported_errors(table_output: TableOutput) -> Iterator[None]:
    """Write the error that ends the block to the stream of events, if there is one."""
    try:
        yield
    except VolbenchError as error:
        complete_hint(error)
        if (events := event_stream(table_output)) is not None:
            from volbench.present.terminal.event_records import error_record

            events.write(error_record(error))
        raise


def event_stream(table_output: TableOutput) -> EventStream | None:
    """Return the stream of ``--format events``; None for other formats."""
    if not table_output.has_events:
        return None
    from volbench.present.terminal.event_records import EventStream

    return EventStream(sys.stdout, clock=time.monotonic)


def write_answer(table: Table[Any], table_output: TableOutput) -> None:
    """Print the table of a verb that ran a campaign, or write it to the stream of events."""
    if (events := event_stream(table_output)) is None:
        table_output.write(table)
        return
    from volbench.present.tables.render_table import render_table
    from volbench.present.terminal.event_records import results_record

    events.write(results_record(json.loads(render_table(table, "json", width=None))))


def show_results(
    layout: Layout, table_output: TableOutput, *, printed: Collection[str] = ()
) -> Sequence[Verdict]:
    """Print the answers to the expectations of the profiles, and the results of finished runs.

    Heavy libraries are imported only after the last run.

    Args:
        printed: runs whose end, with the reason, has been printed already.
    """
    from volbench.api.many_campaigns import open_campaigns, states_expectations, store_tables
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.expectations_table import expectations_table
    from volbench.present.tables.results_table import result_tables, runs_table

    opened = open_campaigns(layout.root)
    store_tables(opened)
    states = dict(opened.runs)
    for run in printed:
        if states[run].state is not RunState.LOST:
            states[run] = replace(states[run], reason="")
    tables = result_tables(opened, states, is_brief=table_output.is_brief)
    verdicts = opened.expect() if states_expectations(opened) else []
    answers = expectations_table(verdicts, is_brief=table_output.is_brief)
    if is_quiet() and table_output.is_brief:
        click.echo(f"{_in_one_line(opened, verdicts)}; {layout.root}")
        return verdicts
    if (events := event_stream(table_output)) is None:
        table_output.write(*tables, lead=[answers] if verdicts else [])
        return verdicts
    from volbench.present.tables.render_table import render_table
    from volbench.present.terminal.event_records import results_record

    runs = runs_table(opened, states)
    rows = json.loads(render_table(runs, "json", width=None))
    answered = json.loads(render_table(answers, "json", width=None))
    events.write(results_record(rows, expectations=answered))
    return verdicts


def say_closing(layout: Layout, table_output: TableOutput) -> None:
    """Print the most important warning and the next command to people."""
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.terminal.conclusion import closing

    if table_output.is_for_people and not is_quiet():
        opened = open_campaigns(layout.root)
        for line in closing(opened.results(), opened.rows("findings"), layout.root):
            table_output.note(line)


def _in_one_line(opened: Dataset, verdicts: Sequence[Verdict]) -> str:
    """Return the answer of a campaign, and what its expectations or warnings say of it."""
    from volbench.model.campaign.planned_run import RunState
    from volbench.model.results.finding import Severity
    from volbench.present.answer import answer_of

    said = " ".join(answer_of(opened)[1:]) or "no result."
    failed = [note.reason for note in opened.runs.values() if note.state is RunState.FAILED]
    if failed:
        said += f" {counted_noun(len(failed), 'run')} failed: {failed[0]}."
    found = Counter(verdict.answer.value for verdict in verdicts)
    warned = [row for row in opened.rows("findings") if row["severity"] != Severity.NOTE.value]
    warnings = counted_noun(len(warned), "warning")
    return f"{said} {', '.join(f'{count} {answer}' for answer, count in found.items()) or warnings}"


def show_warmup(layout: Layout, campaign: Campaign, table_output: TableOutput) -> None:
    """Print whether each warm-up pass has covered the whole volume."""
    from volbench.engine.conditioning.volume_warmup import (
        Outcomes,
        passes_of,
        verification_text,
    )
    from volbench.model.campaign.planned_run import RunState
    from volbench.store.journal import read_history

    states = read_history(layout.journal).states
    passes = passes_of(
        Outcomes(layout), campaign, is_done=lambda run: states.get(run.id) is RunState.FINISHED
    )
    table_output.note(verification_text(passes))
