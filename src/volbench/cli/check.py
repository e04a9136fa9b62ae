"""Verb check: data-quality warnings, expectations and files of campaigns."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.help_pages import VerbCommand
from volbench.cli.options import CAMPAIGNS, EXPECT, JUNIT, WHERE, completed_by, examples, flag
from volbench.cli.output import TableOutput, binary_output, table_options
from volbench.cli.verb_groups import with_paths
from volbench.errors import ArchiveError, FindingsError, InputError, UndecidedError, did_you_mean
from volbench.units import counted_noun

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.ingest.run_files import Difference, Verification
    from volbench.present.formatting import Row
    from volbench.present.tables.table import Table

_FLEET = 4  # Hosts from which each rule has one line


def _rule_names() -> list[str]:
    from volbench.analyse.findings import every_rule

    return [rule.id for rule in every_rule()]


@click.command(
    "check",
    cls=VerbCommand,
    epilog=examples(
        "volbench check results",
        "volbench check results --rule page-cache --json",
        "volbench check results --expect 'randread-qd1.p99 < 5ms' --junit answers.xml",
        "volbench check results --files",
    ),
)
@CAMPAIGNS
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="ID",
    shell_complete=completed_by(_rule_names),
    help="Only this rule; repeatable.",
)
@flag("--strict", "Exit with 10 if there is a warning or an invalid result.")
@EXPECT
@JUNIT
@WHERE
@flag("--files", "Compare files with their checksums, signatures and tables instead.")
@table_options()
def check(
    campaigns: tuple[str | Path, ...],
    rules: tuple[str, ...],
    expectations: tuple[str, ...],
    junit: str | None,
    where: str,
    *,
    strict: bool,
    files: bool,
    table_output: TableOutput,
) -> None:
    """Answer the expectations of the campaigns in DIR..., and list data-quality warnings.

    The rules: volbench help findings. A result marked invalid does not measure what it claims to; a
    warning means that it may be misleading; a note gives context.

    Expectations of the profiles, or of --expect, pass, fail or are undecided: the interval of the
    repeats decides. Exits with 10 if one fails, and with 11 if one is undecided.

    With --files, raw files are compared with their SHA-256 checksums, plan and journal with their
    signatures, and stored tables with the raw files. Exits with 7 if a file was changed or added,
    or is missing or damaged.
    """
    is_judged = bool(expectations or junit)
    if files and (is_judged or rules or strict or where):
        raise InputError(
            "--files checks files, not results", hint="leave out the other options of check"
        )
    if is_judged and (rules or strict):
        raise InputError(
            "--rule and --strict select warnings, not expectations", hint="run check twice"
        )
    if where and not is_judged:
        raise InputError("--where needs --expect or --junit", hint="use --rule to select warnings")
    if files:
        _check_files([Path(campaign) for campaign in campaigns], table_output)
    elif is_judged:
        _judge(campaigns, expectations, junit, where, table_output)
    else:
        _list_warnings(campaigns, rules, table_output, is_strict=strict)


def _list_warnings(
    campaigns: tuple[str | Path, ...],
    rules: tuple[str, ...],
    table_output: TableOutput,
    *,
    is_strict: bool,
) -> None:
    from volbench.analyse.frames.design import design_of
    from volbench.api.many_campaigns import open_campaigns, states_expectations
    from volbench.engine.conditioning.volume_warmup import Outcomes, passes_of
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.answer import days_apart
    from volbench.present.tables.findings_table import findings_table, findings_text
    from volbench.store.layout import Layout

    wanted = _known_rules(rules)
    dataset = open_campaigns(*campaigns)
    verdicts = dataset.expect() if states_expectations(dataset) and not wanted else []
    opened = list(dataset.names.values())
    rows = [
        row
        for campaign in opened
        for row in campaign.rows("findings")
        if not wanted or row["rule"] in wanted
    ]
    for campaign in opened:
        done = {run for run, note in campaign.runs.items() if note.state is RunState.FINISHED}
        outcomes = Outcomes(Layout(campaign.path))
        passes = passes_of(outcomes, campaign.campaign, is_done=lambda run: run.id in done)  # noqa: B023 - used at once
        for volume, words in dict.fromkeys((each.volume, each.condition) for each in passes):
            if words:
                table_output.note(f"conditioned: {volume}: {words}")
    for sentence in days_apart(design_of(dataset.results())):
        table_output.note(sentence)
    finished = sum(
        note.state is RunState.FINISHED for campaign in opened for note in campaign.runs.values()
    )
    folder = campaigns if len(opened) == 1 else ()
    is_fleet = any(len(each.campaign.hosts) >= _FLEET for each in opened)
    table = findings_table(rows)
    if verdicts:
        from volbench.present.tables.expectations_table import expectations_table

        if table_output.is_brief:
            table_output.write(expectations_table(verdicts, is_brief=True))
            click.echo()
        answers = expectations_table(verdicts).records()
        table = replace(table, document={"expectations": answers, "findings": table.records()})
    table_output.write(
        table,
        text=lambda width, colour: findings_text(
            [row | {"advice": with_paths(str(row["advice"]), folder)} for row in rows],
            runs=finished,
            width=width,
            colour=colour,
            detail="whole" if wanted else "line" if is_fleet else "brief",
            paths=shlex.join(map(str, campaigns)),
        ),
    )
    refuse_unmet(verdicts, campaigns)
    if is_strict:
        _fail_on_warnings(rows)


def _judge(
    campaigns: tuple[str | Path, ...],
    expectations: tuple[str, ...],
    junit: str | None,
    where: str,
    table_output: TableOutput,
) -> None:
    """Print the answers to expectations, and raise what the exit code says."""
    from volbench.api.many_campaigns import open_campaigns
    from volbench.present.tables.expectations_table import expectations_table

    verdicts = open_campaigns(*campaigns, where=where).expect(*expectations)
    if junit is not None:
        from volbench.present.tables.junit_report import junit_of_expectations

        with binary_output(junit, default_name="expectations.xml") as sink:
            sink.write(junit_of_expectations(verdicts))
    if junit != "-":
        table_output.write(expectations_table(verdicts, is_brief=table_output.is_brief))
    refuse_unmet(verdicts, campaigns)


def refuse_unmet(verdicts: Sequence[Verdict], campaigns: Sequence[str | Path]) -> None:
    """Raise if an expectation failed, or else if one is undecided."""
    if not verdicts:
        return
    from volbench.analyse.compare.expected_bounds import Answer

    answers = [verdict.answer for verdict in verdicts]
    if failed := answers.count(Answer.FAIL):
        raise FindingsError(
            f"{failed} of {counted_noun(len(answers), 'expectation')} failed",
            hint=with_paths("whether other load caused it: volbench check DIR", campaigns),
        )
    if undecided := answers.count(Answer.UNDECIDED):
        first = verdicts[answers.index(Answer.UNDECIDED)]
        raise UndecidedError(
            f"{undecided} of {counted_noun(len(answers), 'expectation')}"
            f" {'is' if undecided == 1 else 'are'} undecided",
            hint=": ".join(filter(None, [first.expectation.text, first.reason])),
        )


def _known_rules(names: Sequence[str]) -> Collection[str]:
    if not names:
        return ()
    known = _rule_names()
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no rule {name!r}",
                hint=did_you_mean(name, known, f"rules are {', '.join(known)}"),
            )
    return names


def _fail_on_warnings(rows: Sequence[Row]) -> None:
    from volbench.model.results.finding import Severity
    from volbench.present.tables.findings_table import count_severities, counted

    counts = count_severities(rows)
    severe = {severity: counts[severity] for severity in (Severity.INVALID, Severity.WARNING)}
    if any(severe.values()):
        raise FindingsError(
            f"data-quality warnings: {counted(severe)}",
            hint="each finding says what to do; --rule ID looks at one rule only",
        )


@dataclass(frozen=True)
class _Checked:
    """Verification of a campaign folder; None where the campaign itself cannot be read."""

    path: Path
    found: Verification | None
    differences: Sequence[Difference]

    def document(self) -> dict[str, object]:
        """Return the result for JSON."""
        checked = self.found
        return {
            "path": str(self.path),
            "is_intact": not self.differences,
            "files": 0 if checked is None else checked.files,
            "runs_without_checksums": [] if checked is None else checked.unrecorded,
            "signature": "unreadable" if checked is None else checked.signature or "valid",
            "differences": [
                {"file": checked.file, "change": checked.change.value, "reason": checked.reason}
                for checked in self.differences
            ],
        }

    def note(self) -> str:
        """Return what was verified, in a line."""
        if self.found is None:
            return f"{self.path}: cannot be read"
        state = "not as recorded" if self.differences else "as recorded"
        parts = [f"{self.path}: {state}; files compared: {self.found.files}"]
        if self.found.unrecorded:
            parts.append(f"runs without checksums: {len(self.found.unrecorded)}")
        parts.append(f"plan and journal: {self.found.signature or 'signature valid'}")
        return "; ".join(parts)


def _check_files(campaigns: Sequence[Path], table_output: TableOutput) -> None:
    from volbench.api.many_campaigns import campaign_folders

    checked = [_verify(folder) for path in campaigns for folder in campaign_folders(path)]
    count = sum(len(campaign.differences) for campaign in checked)
    notes = "".join(f"{campaign.note()}\n" for campaign in checked)
    table_output.write(_table(checked), text=None if count else lambda *_: notes)
    if count:
        raise ArchiveError(
            f"{count} {'file is' if count == 1 else 'files are'} not as recorded",
            hint="restore them from a backup; tables can be deleted, and are rebuilt",
        )


def _verify(folder: Path) -> _Checked:
    from volbench.api.one_campaign import CampaignData
    from volbench.errors import VolbenchError
    from volbench.ingest.run_files import Change, Difference, verify_files
    from volbench.store.archive import read_campaign
    from volbench.store.journal import read_history

    layout, verification = None, None
    try:
        layout, archive = read_campaign(folder)
        history = read_history(layout.journal)
        verification = verify_files(layout, archive.campaign, history)
        tables = [
            Difference(f"tables/{name}.parquet", Change.CHANGED, "not what the raw files give")
            for name in CampaignData(layout, archive).changed_tables()
        ]
    except VolbenchError as error:
        path = "campaign.json" if layout is None else getattr(error, "path", "")
        reason = error.message.replace(f"{folder}/", "")
        damage = Difference(Path(path).name, Change.DAMAGED, reason)
        return _Checked(
            folder, verification, [*(verification.differences if verification else ()), damage]
        )
    return _Checked(folder, verification, [*verification.differences, *tables])


def _table(checked: Sequence[_Checked]) -> Table[Row]:
    from volbench.present.tables.table import IDENTITY, Column, Table

    columns: list[Column[Row]] = [
        Column("campaign", priority=2),
        Column("file", priority=IDENTITY),
        Column("change", priority=1),
        Column("reason", priority=1, is_folded=True, is_optional=True),
    ]
    return Table(
        "files",
        columns,
        list(_rows(checked)),
        notes=[campaign.note() for campaign in checked],
        document=[campaign.document() for campaign in checked],
    )


def _rows(checked: Sequence[_Checked]) -> Iterator[Row]:
    for campaign in checked:
        for difference in campaign.differences:
            yield {
                "campaign": campaign.path.name,
                "file": difference.file,
                "change": difference.change.value,
                "reason": difference.reason,
            }
