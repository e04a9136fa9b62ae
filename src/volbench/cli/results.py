"""Results of a campaign that has ended, for people and as the last of its events."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.output import TableOutput, report_folder
from volbench.cli.verb_groups import complete_hint, is_quiet
from volbench.errors import InputError, VolbenchError
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.api.many_campaigns import Dataset
    from volbench.model.campaign.planned_run import Campaign
    from volbench.present.formatting import Row
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
    from volbench.model.campaign.planned_run import AUDIT, RunState
    from volbench.present.tables.expectations_table import expectations_table
    from volbench.present.tables.results_table import result_tables, runs_table

    opened = open_campaigns(layout.root)
    store_tables(opened)
    states = dict(opened.runs)
    for run in printed:
        if states[run].state is not RunState.LOST:
            states[run] = replace(states[run], reason="")
    is_brief = table_output.is_brief
    is_compared = is_brief and not table_output.is_wide
    is_audit = {run.profile for run in opened.campaign.runs} == {AUDIT}  # Its answer is its verdict
    tables = result_tables(
        opened, states, is_brief=is_brief, is_compared=is_compared, has_answer=not is_audit
    )
    verdicts = opened.expect() if states_expectations(opened) else []
    answers = expectations_table(verdicts, is_brief=table_output.is_brief)
    if is_quiet() and table_output.is_brief:
        click.echo(f"{_in_one_line(opened, verdicts)}; {layout.root}")
        return verdicts
    if (events := event_stream(table_output)) is None:
        if verdicts and not table_output.is_for_people:
            tables[0] = _with_answers(tables[0], answers.records())
        table_output.write(*tables, lead=[answers] if verdicts else [])
        return verdicts
    from volbench.present.tables.render_table import render_table
    from volbench.present.terminal.event_records import results_record

    runs = runs_table(opened, states)
    rows = json.loads(render_table(runs, "json", width=None))
    answered = json.loads(render_table(answers, "json", width=None))
    events.write(results_record(rows, expectations=answered))
    return verdicts


def _with_answers(table: Table[Any], answers: Sequence[Row]) -> Table[Any]:

    def of_job(row: Row) -> list[Row]:
        return [each for each in answers if each["job"] == row.get("job", each["job"])]

    rows = [{**row, "expectations": of_job(row)} for row in table.records()]
    return replace(table, document=rows)


def say_closing(
    layout: Layout, table_output: TableOutput, *, expected: Sequence[Verdict] = ()
) -> None:
    """Print the most important warning and the next command; of a measurement its chart as well."""
    from volbench.api.many_campaigns import open_campaigns
    from volbench.api.measured_workloads import MEASURE
    from volbench.present.terminal.conclusion import closing, conclusion

    if is_quiet():
        return
    opened, has_answer = open_campaigns(layout.root), not table_output.is_for_people
    is_measured = {run.profile for run in opened.campaign.runs} == {MEASURE}
    if is_measured:
        lines = conclusion(opened, folder=layout.root, expected=expected, has_answer=has_answer)
    else:
        findings, verdicts = opened.rows("findings"), opened.rows("verdicts")
        lines = closing(opened.results(), findings, layout.root, verdicts)
    for line in lines if is_measured or not has_answer else ():
        table_output.note(line)
    if not is_measured:
        return
    try:
        for picture in _pictures(opened):
            table_output.note(f"Chart: {picture}")
    except InputError as error:  # no matplotlib: what was measured is as good without
        table_output.note(f"No chart: {error}")


def _pictures(opened: Dataset) -> Iterator[Path]:
    """Draw the chart that answers first into the report folder; yield its path."""
    from volbench.api.many_campaigns import plot_frame
    from volbench.api.notebook import Chart
    from volbench.present.report.lead_charts import report_plots

    for plot in islice(report_plots(partial(plot_frame, opened)), 1):
        yield Chart(plot).save(report_folder(opened) / f"{plot.name}.svg")


def _in_one_line(opened: Dataset, verdicts: Sequence[Verdict]) -> str:
    from volbench.model.campaign.planned_run import RunState
    from volbench.model.results.finding import Severity
    from volbench.present.answer import answer_of, missing_clients

    missing = missing_clients(opened)
    said = " ".join([*missing, *answer_of(opened)[len(missing) + 1 :]]) or "no result."
    failed = [note.reason for note in opened.runs.values() if note.state is RunState.FAILED]
    if failed:
        said += f" {counted_noun(len(failed), 'run')} failed: {failed[0]}."
    found = Counter(verdict.answer.value for verdict in verdicts)
    severe = (row for row in opened.rows("findings") if row["severity"] != Severity.NOTE.value)
    warned = {(row["run"], row["rule"]) for row in severe}
    warnings = counted_noun(len(warned), "warning")
    return f"{said} {', '.join(f'{count} {answer}' for answer, count in found.items()) or warnings}"


def show_warmup(layout: Layout, campaign: Campaign, table_output: TableOutput) -> None:
    """Print whether each warm-up pass has covered the whole volume."""
    from volbench.engine.conditioning.volume_warmup import Outcomes, passes_of, verification_text
    from volbench.model.campaign.planned_run import RunState
    from volbench.store.journal import read_history

    states = read_history(layout.journal).states
    passes = passes_of(
        Outcomes(layout), campaign, is_done=lambda run: states.get(run.id) is RunState.FINISHED
    )
    table_output.note(verification_text(passes))
