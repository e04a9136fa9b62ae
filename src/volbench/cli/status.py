"""Verb status: campaigns known here, the progress of a campaign, and cleanup of its machines."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.configuration import campaigns_here, results_folder
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import HOST_KEYS, LIMIT, OWN_POLICY, connect
from volbench.cli.options import examples, flag, given_option
from volbench.cli.output import TableOutput, table_options
from volbench.cli.verb_groups import name_campaign
from volbench.errors import (
    ArchiveError,
    CampaignError,
    InputError,
    OutputError,
    TransportError,
    VolbenchError,
    quoted,
)
from volbench.interrupts import end_interrupt
from volbench.units import counted_noun, folded_names, format_count, format_duration, format_rate

if TYPE_CHECKING:
    from volbench.api.campaign_drive import StartPolicy
    from volbench.api.one_campaign import CampaignData
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.event import Progress
    from volbench.model.campaign.planned_run import Campaign, Run, RunState
    from volbench.present.tables.hosts_tables import ClientStatus
    from volbench.present.tables.table import Table
    from volbench.store.journal import History
    from volbench.store.layout import Layout

_POLL_S = 0.2  # Between looks at the log of a controller
_FULL_MIB = 32  # With less free, the disk of the results is full: fio is ended there
_TAIL_BYTES = 2000  # Of that log, that are printed first
_SILENT, _SILENT_S = "no answer for", 5.0  # A host pushes something every second
_WAITS = {"waiting": "ready to start", "ended": "finished"}  # States in which a client does nothing


@click.command(
    "status",
    cls=VerbCommand,
    epilog=examples(
        "volbench status",
        "volbench status results --follow",
        "volbench status results --clean",
        "volbench status results --clean --limit vm7",
    ),
)
@click.argument(
    "folder", required=False, type=click.Path(exists=True, path_type=Path), metavar="[DIR]"
)
@flag("--follow", "Show the progress until the controller ends, then the results.")
@flag(
    "--clean",
    "End active runs and remove processes, scratch files, folders and locks from the machines.",
)
@LIMIT
@OWN_POLICY
@HOST_KEYS
@additions("status")
@table_options()
def status(
    folder: Path | None,
    *,
    follow: bool,
    clean: bool,
    limits: tuple[str, ...],
    policy: StartPolicy | None,
    host_keys: HostKeyPolicy,
    added: Additions,
    table_output: TableOutput,
) -> None:
    """List the campaigns here, or show the progress of each client of the campaign in DIR.

    The list has all campaigns at or below DIR, the latest first; without DIR, those in the folder
    of results and in this folder. With --follow, press Ctrl-C to leave: the campaign continues.
    With --clean, fetched results are kept, and volbench resume repeats the runs that were ended. No
    host is contacted without --clean: runs are listed as running if the journal says so.
    """
    from volbench.store.layout import Layout

    _refuse_other_options(clean=clean)
    if follow and clean:
        raise InputError("--follow and --clean exclude each other", hint="use one of them")
    if folder is None or not Layout(folder).campaign.exists():
        if follow or clean:
            option = "--follow" if follow else "--clean"
            where = "" if folder is None else f", which {folder} is not"
            raise InputError(
                f"{option} needs the folder of a campaign{where}",
                hint="volbench status lists the campaigns here; name one before the option",
            )
        from volbench.api.many_campaigns import campaign_folders

        paths = () if folder else campaigns_here()
        top = folder or results_folder()
        table_output.write(_known_campaigns(paths or campaign_folders(top, with_results=False)))
        return
    name_campaign(folder)
    if clean:
        _clean(folder, limits, policy, host_keys, added)
    elif follow:
        _follow(folder)
    else:
        _show_progress(folder, table_output)


def _refuse_other_options(*, clean: bool) -> None:
    names = ("limits", "policy", "forks", "known_hosts", "accept_new")
    if not clean and (option := given_option(*names)):
        message = f"{option} has no effect without --clean: no host is contacted"
        raise InputError(message, hint=f"leave out {option}, or add --clean")


def _known_campaigns(paths: Iterable[Path]) -> Table[Mapping[str, object]]:
    """Return a row for each campaign, the latest first, with the answer to its first workload."""
    from volbench.present.tables.table import text_table
    from volbench.store.archive import read_campaign

    plans: list[tuple[str, Path, Campaign | VolbenchError]] = []
    for path in paths:
        try:
            plan = read_campaign(path)[1].campaign
        except VolbenchError as error:
            plans.append(("", path, error))
        else:
            plans.append((plan.created_utc, path, plan))
    plans.sort(key=lambda entry: entry[0], reverse=True)
    rows = [_campaign_row(path, plan) for _, path, plan in plans]
    return text_table(
        "campaigns",
        rows,
        identity="campaign",
        priorities={"profile": 4, "target": 3, "date": 2},
        folded=["answer", "target"],
    )


def _campaign_row(path: Path, plan: Campaign | VolbenchError) -> dict[str, str]:
    from volbench.api.one_campaign import campaign_data

    if isinstance(plan, VolbenchError):
        return {"campaign": str(path), "answer": f"cannot be read: {plan.message}"}
    row = {
        "campaign": str(path),
        "date": plan.created_utc[:16].replace("T", " "),
        "profile": ", ".join(dict.fromkeys(run.profile for run in plan.runs)),
        "target": ", ".join(dict.fromkeys(run.volume.target for run in plan.runs)),
    }
    try:
        return row | _result(campaign_data(path))
    except VolbenchError as error:
        return row | {"answer": f"cannot be read: {error.message}"}


def _result(data: CampaignData) -> dict[str, str]:
    from volbench.model.campaign.planned_run import RunState
    from volbench.model.profile.profile_model import Phase
    from volbench.model.results.finding import Severity
    from volbench.store.journal import read_history
    from volbench.store.layout import Layout

    findings = data.rows("findings")
    invalid = {row["run"] for row in findings if row["severity"] == Severity.INVALID.value}
    severe = (row for row in findings if row["severity"] != Severity.NOTE.value)
    warned = {(row["run"], row["rule"]) for row in severe}
    rows = [row for row in data.rows("summary") if row["phase"] == Phase.MEASURED.value]
    finished = [row for row in rows if row["status"] == RunState.FINISHED.value]
    rates = [*_median_rates(row for row in finished if row["run"] not in invalid)]
    failed = {row["run"] for row in rows if row["status"] == RunState.FAILED.value}
    answer = "no valid result" if invalid and finished else "no result"
    if rates:
        low, high = min(rates)[1], max(rates)[1]
        answer = low if len(rates) == 1 else f"{len(rates)} results, {low} to {high}"
    if failed:
        answer += f"; {counted_noun(len(failed), 'run')} failed"
    states = read_history(Layout(data.path).journal).states
    left = _runs_left(data.campaign, states)
    if not all(states.get(run.id) is RunState.FAILED for run in left):
        state = "running" if data.is_running else "interrupted" if states else "never started"
        answer = f"{state}, {_of_all(data.campaign, left)} left: {answer}"
    return {"answer": answer, "warnings": str(len(warned))}


def _median_rates(rows: Iterator[Mapping[str, object]]) -> Iterator[tuple[float, str]]:
    """Yield the median rate, and in words, of each workload, direction and volume."""
    from volbench.analyse.frames.design import MIN_REPEAT_RATIO

    workloads: dict[tuple[object, ...], list[Mapping[str, object]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("volume", "job", "group", "direction"))
        workloads.setdefault(key, []).append(row)
    for (_, job, _, direction), repeats in workloads.items():
        for column, show in (("iops", format_count), ("bw_bytes_per_s", format_rate)):
            values = [value for row in repeats if isinstance(value := row[column], float)]
            if values:
                low, high = min(values), max(values)
                is_unlike = high >= MIN_REPEAT_RATIO * low
                rate = f"{show(low)} to {show(high)}" if is_unlike else show(median(values))
                unit = " IOPS" if column == "iops" else ""
                yield median(values), f"{job} {direction}: {rate}{unit}"
                break


def _show_progress(campaign: Path, table_output: TableOutput) -> None:
    from volbench.api.live_rates import read_rates
    from volbench.engine.campaign.campaign_engine import left_out
    from volbench.ingest.run_files import read_status
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.hosts_tables import ClientStatus, status_table
    from volbench.present.tables.summary_table import damage_notes
    from volbench.store.archive import is_held, read_campaign
    from volbench.store.journal import read_history

    layout, archive = read_campaign(campaign)
    history, is_running = read_history(layout.journal), is_held(layout)
    clients: dict[tuple[str, int], ClientStatus] = {}
    damaged: dict[str, str] = {}
    rates = read_rates(layout)
    for run in archive.campaign.runs:
        ended = None
        try:
            ended = read_status(layout.run(run.id))
        except OutputError as error:
            damaged[run.id] = error.message.removeprefix(f"{layout.run(run.id).path}/")
        silent_utc = history.silent.get(run.host, "") if is_running else ""
        status = ClientStatus(run.host, run.client, silent_utc=silent_utc)
        client, state = (
            clients.setdefault((run.host, run.client), status),
            history.states.get(run.id),
        )
        if state is RunState.RUNNING and not is_running:
            state = RunState.INTERRUPTED
        is_held_back = ended and ended.start and ended.start.start_s is None
        if state is RunState.INTERRUPTED and is_held_back:
            state = None  # it waited for others, and never began
            history.reasons.pop(run.id, "")
        client.add(run.id, state, history.processes.get(run.id, {}))
    _note_waits(clients.values(), {run.id: run.step for run in archive.campaign.runs}, rates)
    left = _runs_left(archive.campaign, history.states)
    controller = [] if left else ["finished"]
    if left and is_running:
        controller = [_running_words(archive.campaign, left, clients.values())]
    notes = [*controller, *left_out(archive.campaign.absent), *damage_notes(damaged)]
    table_output.write(status_table(list(clients.values()), notes=notes))
    if left and not is_running:
        raise _unfinished(campaign, archive.campaign, left, history)


def _note_waits(
    clients: Collection[ClientStatus], steps: Mapping[str, int], rates: Mapping[str, Progress]
) -> None:
    """Note the rate of each active client, the silence of its host, or for whom it waits."""
    from volbench.model.campaign.event import Progress

    active = {each.running: each for each in clients if each.running}
    seen = {run: rates.get(run, Progress(0.0)) for run in active}
    behind = {run for run in active if seen[run].state not in _WAITS}
    for run, client in active.items():
        since = client.silent_utc and datetime.fromisoformat(client.silent_utc).timestamp()
        silent_s = max(seen[run].silent_s, time.time() - since if since else 0.0)
        names = dict.fromkeys(active[o].host for o in behind if steps[o] == steps[run])
        if silent_s >= _SILENT_S:
            client.note = f"{_SILENT} {format_duration(int(silent_s))}"
        elif run in behind:
            client.iops = seen[run].iops
        else:
            waits = f", waits for {folded_names([*names])}" if names else ""
            client.note = _WAITS[seen[run].state] + waits


def _unfinished(
    folder: Path, plan: Campaign, left: Sequence[Run], history: History
) -> CampaignError:
    """Return the error of a campaign whose controller has ended before its runs."""
    from volbench.engine.hosts.connected_host import by_cause

    failed = [run for run in left if history.states.get(run.id, "") == "failed"]
    words = "interrupted" if history.states else "never started"
    words = f"{words}: no controller runs, and {_of_all(plan, left)} left to do"
    if len(failed) == len(left):
        words = f"{_of_all(plan, left)} failed: volbench show says why"
    reasons = [(run.host, reason) for run in left if (reason := history.reasons.get(run.id))]
    if reasons and len(failed) < len(left):
        names, reason, _ = by_cause(reasons)[0]
        words += f" ({names}: {reason})" if reasons[0][0] else f" ({reason})"
    resume = f"volbench resume {quoted(folder)}"
    hint = f"continue it: {resume}" if len(failed) < len(left) else ""
    if failed:
        again = f"--retry-failed also repeats {counted_noun(len(failed), 'failed run')}"
        hint = f"{hint}; {again}" if hint else f"repeat the failed runs: {resume} --retry-failed"
    return CampaignError(words, hint=_full_disk(folder) + hint)


def _full_disk(folder: Path) -> str:
    """Return how to free the disk of a campaign folder if it is full, or nothing."""
    if shutil.disk_usage(folder).free >= _FULL_MIB << 20:
        return ""
    mount = next(path for path in folder.resolve().parents if path.is_mount())
    look = f"`du -xhd1 {quoted(mount)} | sort -h` shows what fills it; free some, then "
    return f"less than {_FULL_MIB} MiB are free on {mount}: {look}"


def _runs_left(plan: Campaign, states: Mapping[str, RunState]) -> list[Run]:
    known = ((run, states.get(run.id)) for run in plan.runs if not run.imported)
    return [run for run, state in known if state is None or not state.is_settled]


def _of_all(plan: Campaign, left: Sequence[Run]) -> str:
    return f"{len(left)} of {counted_noun(len(plan.runs), 'run')}"


def _running_words(plan: Campaign, left: Sequence[Run], clients: Collection[ClientStatus]) -> str:
    """Return how much of a campaign that is running is left, and how long that takes."""
    from volbench.plan.expansion.estimate import estimate

    active = {each.running for each in clients}
    step = min((run.step for run in left if run.id in active), default=0)
    of_step = f" step {step} of {plan.runs[-1].step}," if step else ""
    words = f"running:{of_step} {_of_all(plan, left)} left"
    if silent := {each.host for each in clients if each.note.startswith(_SILENT)}:
        return f"{words}; it waits for {', '.join(sorted(silent))}, for an unknown time"
    left_s = estimate(plan.model_copy(update={"runs": tuple(left)})).total_s
    if left_s is None:
        return words
    since_utc = min((each.since_utc for each in clients if each.running), default="")
    if since_utc:
        left_s -= time.time() - datetime.fromisoformat(since_utc).timestamp()
    return f"{words}, {f'about {format_duration(round(left_s))}' if left_s >= 1 else 'overdue'}"


def _follow(campaign: Path) -> None:
    """Show the progress until the controller ends, then the results."""
    from volbench.cli.results import show_results
    from volbench.store.archive import is_held, read_campaign
    from volbench.store.journal import read_history

    layout, archive = read_campaign(campaign)
    if not is_held(layout):
        raise CampaignError(
            f"the campaign in {campaign} is not running",
            hint=f"continue it: volbench resume {quoted(campaign)}; or see: "
            f"volbench status {quoted(campaign)}",
        )
    try:
        _print_log(layout, archive.campaign)
    except KeyboardInterrupt:
        end_interrupt()
        click.echo(f"\nthe campaign in {campaign} continues", err=True)
        return
    show_results(layout, TableOutput())
    history = read_history(layout.journal)
    if left := _runs_left(archive.campaign, history.states):
        raise _unfinished(campaign, archive.campaign, left, history)


def _print_log(layout: Layout, plan: Campaign) -> None:
    """Print the log of a controller until that ends, on a terminal above the bars of `run`."""
    from volbench.api.live_rates import events_of
    from volbench.present.terminal.listeners import bars_for

    path = layout.controller_log if layout.controller_log.exists() else Path(os.devnull)  # a watch
    with path.open("rb") as log, bars_for(sys.stderr) as bars:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
        if log.tell():
            log.readline()
        for events in events_of(layout, plan):
            lines = log.read().decode("utf-8", "replace")
            if bars is None:
                click.echo(lines, nl=False, err=True)
            else:
                bars.follow(events, lines)
            time.sleep(_POLL_S)


def _clean(
    campaign: Path,
    limits: tuple[str, ...],
    policy: StartPolicy | None,
    host_keys: HostKeyPolicy,
    added: Additions,
) -> None:
    """End the active runs of a campaign and clean up its machines.

    Reachable hosts are cleaned up even if others cannot be reached.
    """
    from volbench.engine.campaign.cleanup import reap
    from volbench.engine.campaign.resume_plan import hosts_to_reach, resume_on
    from volbench.present.terminal.listeners import listener_for
    from volbench.store.consent import read_own_campaign
    from volbench.store.journal import read_signed_history

    layout, archive, seal = read_own_campaign(campaign)
    plan = archive.campaign if policy is None else policy.of(archive.campaign)
    history, _ = read_signed_history(layout.journal, seal)
    hosts = hosts_to_reach(plan, history.states, limits, used=history.in_use)
    with ExitStack() as stack:
        planned = () if limits else plan.hosts
        there = stack.enter_context(added.removed(hosts, campaign, planned=planned))
        if plan.hosts and not there:  # all of its pods are gone
            click.echo(f"nothing of {campaign} is running", err=True)
            return
        connected = stack.enter_context(connect(there, host_keys))
        reached = resume_on(connected, archive, allow_exec=True)
        with listener_for(sys.stderr) as listener:
            damage = reap(layout, plan, reached.hosts, listener=listener)
    where = ", ".join(host.name for host in reached.hosts) if reached.absent else "its machines"
    click.echo(f"cleaned up {where}; the results in {campaign} are kept", err=True)
    left = "; ".join(error.message for error in reached.absent.values())
    hint = f"once it answers: volbench status {quoted(campaign)} --clean"
    if not reached.may_go_on(plan):
        raise TransportError(f"not cleaned up: {left}", hint=hint)
    if left:
        click.echo(f"note: not cleaned up: {left}; {hint}", err=True)
    if damage is not None:
        raise ArchiveError(
            f"{damage.message}; files that this or a later line names are not removed",
            hint=f"look for folders volbench-{plan.key} on its volumes, and remove them; "
            f"measure again: volbench run --like {quoted(campaign)}",
            path=damage.path,
        )
