"""Verbs show, check and verify."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.options import (
    CAMPAIGNS,
    LOCAL_CAMPAIGNS,
    WHERE,
    completed_by,
    examples,
    flag,
    names_option,
)
from volbench.cli.output import TableOutput, table_options
from volbench.cli.verb_groups import with_paths
from volbench.errors import ArchiveError, FindingsError, InputError, did_you_mean

if TYPE_CHECKING:
    from volbench.api.many_campaigns import Dataset
    from volbench.ingest.run_files import Difference, Verification
    from volbench.model.campaign.planned_run import RunNote
    from volbench.present.formatting import Row
    from volbench.present.tables.table import Table


@click.command(
    "show",
    epilog=examples(
        "volbench show results",
        "volbench show results --use",
        "volbench show results --by bs,iodepth --where 'rw==randread'",
    ),
)
@CAMPAIGNS
@flag("--each", "Show every result; by default, more than 60 are grouped.")
@flag("--runs", "Show every run with its state and the reason.", "by_run")
@flag("--use", "Show the USE table of devices: utilization, saturation, errors.")
@flag("--processes", "Show the processes with the most I/O on the hosts of a watch.")
@flag("--rounds", "Show how steady state was determined, round by round.")
@names_option("--by", "by", text="Show medians of results that are equal in these columns.")
@flag("--all", "Show one row for each campaign, with its progress.", "by_campaign")
@WHERE
@table_options()
def show(
    campaigns: Sequence[str | Path],
    *,
    where: str,
    each: bool,
    by_run: bool,
    use: bool,
    processes: bool,
    rounds: bool,
    by: tuple[str, ...],
    by_campaign: bool,
    table_output: TableOutput,
) -> None:
    """Show the results of the campaigns in DIR, and the state of runs without a result."""
    if where and (by_campaign or rounds):
        raise InputError(
            "--where selects runs, but --all and --rounds show whole campaigns",
            hint="use only one of them",
        )
    from volbench.api.many_campaigns import open_campaigns

    opened = open_campaigns(*campaigns, where=where)
    if by_campaign:
        _show_campaigns(opened, table_output)
    elif rounds:
        _show_rounds(opened, table_output)
    elif use:
        _show_use(opened, table_output)
    elif processes:
        _show_processes(opened, table_output)
    elif by_run:
        _show_states(opened, table_output)
    else:
        _show_results(opened, table_output, each=each, by=by)


def _show_results(
    opened: Dataset, table_output: TableOutput, *, each: bool, by: Sequence[str]
) -> None:
    from volbench.present.tables.results_table import result_tables
    from volbench.present.terminal.campaign_text import came_from

    is_brief = table_output.is_brief and not each
    tables = result_tables(opened, _selected(opened), is_brief=is_brief, by=by)
    table_output.write(*tables, lead=[] if by else list(_answers(opened, is_brief=is_brief)))
    if table_output.format in {"json", "csv"}:
        return
    for data in opened.names.values():
        if notice := came_from(data.campaign):
            click.echo(notice, err=True)
        if data.campaign.design:
            click.echo(f"{data.campaign.design}: volbench compare pairs them", err=True)
        for words in data.imprecise:
            click.echo(f"warning: {words}", err=True)


def _answers(opened: Dataset, *, is_brief: bool) -> Iterator[Table[Any]]:
    """Yield the answers to the expectations of the profiles, if there are any."""
    if opened.expects:
        from volbench.present.tables.expectations_table import expectations_table

        yield expectations_table(opened.expect(), is_brief=is_brief)


def _selected(opened: Dataset) -> dict[str, RunNote]:
    if not opened.where:
        return opened.runs
    runs = set(opened.summary()["run"])
    return {run: note for run, note in opened.runs.items() if run in runs}


def _show_states(opened: Dataset, table_output: TableOutput) -> None:
    from volbench.present.tables.plan_tables import states_table

    table_output.write(states_table(_selected(opened)))


def _show_campaigns(opened: Dataset, table_output: TableOutput) -> None:
    from volbench.present.tables.plan_tables import campaign_record, campaigns_table

    records = [
        campaign_record(name, data.address, data.campaign, data.runs)
        for name, data in opened.names.items()
    ]
    table_output.write(campaigns_table(records))


def _show_rounds(opened: Dataset, table_output: TableOutput) -> None:
    """Print the determination of steady state, and the results over its window."""
    from volbench.present.tables.rounds_table import rounds_tables

    tables = rounds_tables(
        {name: (data.campaign.rounds, data.summary()) for name, data in opened.names.items()}
    )
    if not tables:
        raise InputError(
            "no profile of this campaign has rounds",
            hint="add rounds to the profile, or use a profile that has them, such as cloud-lite",
        )
    table_output.write(*tables)


def _show_use(opened: Dataset, table_output: TableOutput) -> None:
    """Print utilization, saturation and errors of the device beside each run."""
    from volbench.analyse.bottleneck.use_method import use_rows
    from volbench.present.formatting import records
    from volbench.present.tables.use_table import use_table

    summary, device, verdicts = (opened.frame(n) for n in ("summary", "device", "verdicts"))
    rows = records(use_rows(summary, device, verdicts))
    if not rows and table_output.format not in {"json", "csv"}:
        raise InputError(
            "this campaign has no samples of device counters",
            hint="volbench run samples them; the first lines of its output say why it did not",
        )
    table_output.write(use_table(rows))


def _show_processes(opened: Dataset, table_output: TableOutput) -> None:
    """Print which processes of watched hosts caused how many bytes."""
    from volbench.present.tables.processes_table import processes_table

    table_output.write(processes_table(opened.frame("processes")))


def _rule_names() -> list[str]:
    from volbench.analyse.findings import RULES

    return [rule.id for rule in RULES]


@click.command(
    "check",
    epilog=examples("volbench check results", "volbench check results --rule page-cache --json"),
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
@table_options()
def check(
    campaigns: tuple[str | Path, ...],
    rules: tuple[str, ...],
    *,
    strict: bool,
    table_output: TableOutput,
) -> None:
    """List data-quality warnings of the campaigns in DIR..., with reasons and advice.

    The rules: volbench help findings. A result marked invalid does not measure
    what it claims to; a warning means that it may be misleading; a note gives context.
    """
    from volbench.api.many_campaigns import open_campaigns
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.findings_table import findings_table, findings_text

    wanted = _known_rules(rules)
    opened = list(open_campaigns(*campaigns).names.values())
    rows = [
        row
        for campaign in opened
        for row in campaign.rows("findings")
        if not wanted or row["rule"] in wanted
    ]
    finished = sum(
        note.state is RunState.FINISHED for campaign in opened for note in campaign.runs.values()
    )
    folder = campaigns if len(opened) == 1 else ()
    table_output.write(
        findings_table(rows),
        text=lambda width, colour: findings_text(
            [row | {"advice": with_paths(str(row["advice"]), folder)} for row in rows],
            runs=finished,
            width=width,
            colour=colour,
            is_brief=not wanted,
            paths=shlex.join(map(str, campaigns)),
        ),
    )
    if strict:
        _fail_on_warnings(rows)


def _known_rules(names: Sequence[str]) -> Collection[str]:
    """Return the names of rules if all of them exist."""
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
    """Accept notes, and fail on anything more severe."""
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


@click.command(
    "verify",
    epilog=examples("volbench verify results/quick", "volbench verify results --json"),
)
@LOCAL_CAMPAIGNS
@table_options()
def verify(campaigns: Sequence[Path], *, table_output: TableOutput) -> None:
    """Verify that the campaigns in DIR... are as they were recorded.

    Compares raw files with their SHA-256 checksums, plan and journal with their signatures, and
    stored tables with the raw files. Exits with 7 if a file was changed or added, or is missing or
    damaged.
    """
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
        "verify",
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
