"""Verb expect: a check of results against stated requirements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import CAMPAIGNS, EXPECT, JUNIT, WHERE, examples
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.cli.verb_groups import VerbCommand
from volbench.errors import FindingsError, UndecidedError
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict


@click.command(
    "expect",
    cls=VerbCommand,
    epilog=examples(
        "volbench expect results/quick --expect 'randread-qd1.p99 < 5ms'",
        "volbench expect results/quick --expect needs.yaml --junit answers.xml",
        "volbench expect results/quick --expect 'iops >= 3000' --expect 'p99 < 10ms'",
    ),
)
@CAMPAIGNS
@EXPECT
@JUNIT
@WHERE
@table_options()
def expect(
    campaigns: tuple[str | Path, ...],
    expectations: tuple[str, ...],
    junit: Path | None,
    where: str,
    *,
    table_output: TableOutput,
) -> None:
    """Check the results in DIR against expectations: each passes, fails or is undecided.

    Without --expect, the expectations of the profiles are checked. The interval of the repeats
    decides; a single run is judged without one, and the output says so.
    Exits with 10 if an expectation fails, and with 11 if one is undecided.
    """
    from volbench.api.expectations import read_expectations
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.tables.expectations_table import expectations_table

    verdicts = open_campaigns(*campaigns, where=where).expect(*read_expectations(expectations))
    if junit is not None:
        from volbench.present.tables.junit_report import junit_of_expectations

        with binary_output(str(junit), default_name="expectations.xml") as sink:
            sink.write(junit_of_expectations(verdicts))
    if str(junit) != "-":
        table_output.write(expectations_table(verdicts, is_brief=table_output.is_brief))
    refuse_unmet(verdicts)


def refuse_unmet(verdicts: Sequence[Verdict]) -> None:
    """Raise if an expectation failed, or else if one is undecided."""
    if not verdicts:
        return
    from volbench.analyse.compare.expected_bounds import Answer

    answers = [verdict.answer for verdict in verdicts]
    if failed := answers.count(Answer.FAIL):
        raise FindingsError(
            f"{failed} of {counted_noun(len(answers), 'expectation')} failed",
            hint="the first column has the answers",
        )
    if undecided := answers.count(Answer.UNDECIDED):
        raise UndecidedError(
            f"{undecided} of {counted_noun(len(answers), 'expectation')}"
            f" {'is' if undecided == 1 else 'are'} undecided",
            hint="the last column says what is missing",
        )
