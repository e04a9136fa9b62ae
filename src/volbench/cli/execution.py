"""Cost of a campaign, and confirmation of long or destructive campaigns."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.options import (
    ALLOW_DESTROY,
    ALLOW_SHARED_FOLDER,
    DRY_RUN,
    GRACE,
    NEW_CAMPAIGN,
    YES,
    Decorator,
    ListenersOf,
    consent_options,
    option_group,
    settings_options,
)
from volbench.cli.output import TableOutput, note_owner
from volbench.cli.verb_groups import complete_hint, is_quiet, name_campaign, questions_shown
from volbench.errors import InputError, RefusedError, VolbenchError

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.engine.campaign.campaign_state import Settings
    from volbench.engine.campaign.prepare import CampaignRequest, Prepared
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.connect import HostKeyPolicy
    from volbench.execute.protocol import Executor
    from volbench.model.campaign.planned_run import Campaign, Consent, Run, Volume
    from volbench.present.tables.table import Table
    from volbench.present.terminal.event_records import EventStream
    from volbench.store.layout import Layout


def confirm_length(prepared: Prepared, *, yes: bool) -> None:
    """Print time and bytes of a campaign, and ask for confirmation if it is long."""
    from volbench.present.terminal.campaign_text import estimate_words

    _print_notes(prepared)
    click.echo(estimate_words(prepared.estimate), err=True)
    if yes or not prepared.estimate.is_long or not sys.stdin.isatty():
        return
    with questions_shown():
        is_confirmed = click.confirm(
            "This campaign will take a long time. Start it?", err=True, default=False
        )
    if not is_confirmed:
        raise RefusedError(
            "the campaign was not confirmed; nothing was run",
            hint="make it shorter with --set runtime=..., or leave out jobs with --set 'JOB='",
        )


def _print_notes(prepared: Prepared) -> None:
    """Print what is unusual about the volumes: they are memory, or files that do not exist yet."""
    from volbench.model.campaign.planned_run import VolumeKind
    from volbench.present.terminal.campaign_text import memory_words

    volumes = prepared.archive.provenance.volumes
    if warning := memory_words(volumes):
        click.echo(warning, err=True)
    if any(not host.is_local for host in prepared.campaign.hosts):
        return
    for path in (facts.path for facts in volumes if facts.kind is VolumeKind.FILE):
        if not Path(path).exists():
            click.echo(f"note: {path} does not exist: the runs use a new file", err=True)


def confirm_destruction(
    hosts: Sequence[ConnectedHost], campaign: Campaign, *, only: Sequence[str] = ()
) -> None:
    """Ask the user to type the name of each device that a run may overwrite.

    Without a terminal nothing is asked: scripts use ``--allow-destroy``.

    Args:
        only: devices as --allow-destroy names them; all where it is empty.
    """
    from volbench.model.campaign.host import LOCAL

    if not sys.stdin.isatty():
        return
    from volbench.engine.guard.run_guard import describe_device
    from volbench.engine.guard.volume_targets import probe_volume

    executors = {host.name: host.executor for host in hosts}
    for (host, target), volume in _written_devices(campaign).items():
        name = target if host == LOCAL else f"{host}:{target}"
        if host not in executors or (only and name not in only):
            continue
        facts = probe_volume(executors[host], volume)
        with questions_shown():
            click.echo(describe_device(facts, host=_host_name(executors[host])), err=True)
            typed = click.prompt(
                f"All data on it will be overwritten. Type {name} to continue", err=True, default=""
            )
        if typed.strip() != name:
            raise RefusedError(
                f"{name} was not confirmed; nothing was done",
                hint=f"type exactly {name} when asked",
            )


def ask_secrets(runs: Iterable[Run], known: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of runs: known ones, and others from the environment or the terminal."""
    from volbench.model.campaign.run_secrets import missing_secrets

    secrets = dict(known)
    for variable, use in missing_secrets(runs, known).items():
        given = os.environ.get(variable, "")
        if not given and sys.stdin.isatty():
            with questions_shown():
                given = click.prompt(f"Password for {use}", hide_input=True, err=True, default="")
        if not given or not given.isprintable():
            raise InputError(
                f"the password for {use} is missing",
                hint=f"set the environment variable {variable}, or use a terminal to be asked",
            )
        secrets[variable] = given
    return secrets


def _host_name(executor: Executor) -> str:
    """Return the name of a machine in the plan, and its own."""
    from volbench.model.campaign.host import LOCAL

    hostname = (executor.read_files(["/proc/sys/kernel/hostname"])[0] or "").strip()
    return f"{'this machine' if executor.host == LOCAL else executor.host} ({hostname})"


def _written_devices(campaign: Campaign) -> dict[tuple[str, str], Volume]:
    """Return the devices that will be written, by host and path."""
    from volbench.fio.jobs.render_job import writes
    from volbench.model.campaign.planned_run import VolumeKind

    return {
        (run.host, run.volume.target): run.volume
        for run in campaign.runs
        if run.volume.kind is VolumeKind.DEVICE and writes(run)
    }


@dataclass(frozen=True)
class StartOptions:
    """Options that start a campaign."""

    output: Path | None  # its folder; None for one with a default name
    consent: Consent
    dry_run: bool  # show the plan instead
    yes: bool  # skip the confirmation of a long one
    execution: Settings
    added: Additions  # by extensions
    detach: bool = False  # run in the background
    allow_exec: bool = False  # accept options that run programs or leave the run\'s folder


def start_options(verb: str, *more: Decorator, execution: Sequence[Decorator] = ()) -> Decorator:
    """Return the options of a verb that starts a campaign, as the keyword `start`.

    Args:
        verb: its name, by which extensions add options.
        execution: options of the execution, beside the usual one.
    """
    consent = consent_options(ALLOW_DESTROY, ALLOW_SHARED_FOLDER)
    settings = settings_options(GRACE, *execution)
    usual = (NEW_CAMPAIGN, consent, DRY_RUN, YES, settings, additions(verb))
    return option_group("start", StartOptions, *usual, *more)


@dataclass(frozen=True)
class EndedCampaign:
    """A campaign that has ended, and the answers to its expectations."""

    layout: Layout
    verdicts: Sequence[Verdict]


def carry_out(
    hosts: Sequence[ConnectedHost],
    request: CampaignRequest,
    *,
    start: StartOptions,
    table_output: TableOutput,
    host_keys: HostKeyPolicy | None = None,
    has_answer: bool = False,
    warnings_of: Callable[[Campaign], Iterable[str]] = lambda _plan: (),
) -> EndedCampaign | None:
    """Prepare a campaign; show its plan, or ask for confirmation, create its folder and run it.

    Args:
        host_keys: of the hosts, for a controller in the background.
        has_answer: whether the verb prints a table of its own instead of the results.
        warnings_of: returns what the verb has to say about its plan before anything runs.

    Returns:
        The campaign that has ended; None for a plan, and for one in the background.
    """
    from volbench.engine.campaign.prepare import prepare
    from volbench.plan.profile.profile_document import profile_warnings
    from volbench.store.consent import create_signed_campaign

    with reported_errors(table_output):
        prepared = prepare(hosts, request)
        of_profiles = (text for each in request.profiles for text in profile_warnings(each))
        for warning in (*of_profiles, *warnings_of(prepared.campaign)):
            click.echo(f"warning: {warning}", err=True)
        if start.dry_run:
            show_plan(prepared, table_output)
            return None
        confirm_length(prepared, yes=start.yes)
        # Where hosts were made for the campaign, this was asked before their volumes were.
        machines = [host for host in prepared.hosts if not host.host.connection]
        confirm_destruction(machines, prepared.campaign)
        secrets = ask_secrets(prepared.campaign.runs, prepared.secrets)
        settings = replace(start.execution, secrets=secrets)
        with start.added.served() as listeners_of:
            layout = create_signed_campaign(request.into, prepared.archive, inputs=prepared.inputs)
            name_campaign(layout.root)
            if not start.detach:
                plan = prepared.campaign
                verdicts = execute(
                    prepared.hosts,
                    layout,
                    plan,
                    settings=settings,
                    table_output=table_output,
                    listeners_of=listeners_of,
                    has_answer=has_answer,
                )
                return EndedCampaign(layout, verdicts)
        from volbench.cli.resumption import ResumeRequest, resume_in_background
        from volbench.execute.connect import HostKeyPolicy

        resume_in_background(
            layout,
            ResumeRequest(
                execution=settings,
                host_keys=host_keys or HostKeyPolicy(),
                added=start.added.kept(),
                allow_exec=start.allow_exec,
            ),
        )
        return None


def show_plan(prepared: Prepared, table_output: TableOutput) -> None:
    """Print what would run, in order, with duration and bytes where known."""
    from volbench.plan.expansion.estimate import expected_s
    from volbench.present.tables.plan_tables import runs_table
    from volbench.present.terminal.campaign_text import estimate_words

    runs = prepared.campaign.runs
    expected = {run.id: seconds for run in runs if (seconds := expected_s(run)) is not None}
    table_output.write(runs_table(prepared.campaign, expected_s=expected))
    for absent in prepared.campaign.absent:
        click.echo(f"left out: {absent.host}: {absent.reason}", err=True)
    _print_notes(prepared)
    table_output.note(estimate_words(prepared.estimate))


def execute(
    hosts: Sequence[ConnectedHost],
    layout: Layout,
    campaign: Campaign,
    *,
    settings: Settings,
    table_output: TableOutput,
    listeners_of: ListenersOf,
    has_answer: bool = False,
) -> Sequence[Verdict]:
    """Run a campaign with progress on standard error and its results on standard output.

    When the terminal is closed (SIGHUP) it goes on without one, and prints to its log. Its metrics
    are added to those that are served.

    Returns:
        The answers to the expectations of its profiles.
    """
    from volbench.cli.controller import logged_listener
    from volbench.engine.campaign.added_listeners import added_listeners
    from volbench.engine.campaign.campaign_engine import run_campaign
    from volbench.engine.run.process_watch import stop_on_signals
    from volbench.model.campaign.event import Event, RunEnded
    from volbench.store.held_folder import hold_folder
    from volbench.store.journal import read_history

    printed: set[str] = set()

    def note_end(event: Event) -> None:
        if isinstance(event, RunEnded) and not is_quiet():
            printed.add(event.run.id)

    with hold_folder(layout.root, made=layout.made):
        more = [*listeners_of(layout), note_end]
        note_owner(layout.root)
        try:
            with (
                added_listeners(layout, [host.host for host in hosts]) as added,
                logged_listener(
                    layout, events=_events(table_output), more=[*more, *added]
                ) as listener,
                stop_on_signals(on_hangup=listener.detach) as stop,
            ):
                run_campaign(
                    layout, campaign, hosts, settings=settings, listener=listener, stop=stop
                )
        finally:
            verdicts = [] if has_answer else show_results(layout, table_output, printed=printed)
            click.echo(f"campaign folder: {layout.root}", err=True)
            if campaign.repeats:
                for words in read_history(layout.journal).imprecise:
                    click.echo(f"warning: {words}", err=True)
    if any(run.extent for run in campaign.runs):
        _show_warmup(layout, campaign, table_output)
    return verdicts


@contextmanager
def reported_errors(table_output: TableOutput) -> Iterator[None]:
    """Write the error that ends the block to the stream of events, if there is one."""
    try:
        yield
    except VolbenchError as error:
        complete_hint(error)
        if (events := _events(table_output)) is not None:
            from volbench.present.terminal.event_records import error_record

            events.write(error_record(error))
        raise


def _events(table_output: TableOutput) -> EventStream | None:
    """Return the stream of ``--format events``; None for other formats."""
    if not table_output.has_events:
        return None
    from volbench.present.terminal.event_records import EventStream

    return EventStream(sys.stdout, clock=time.monotonic)


def write_answer(table: Table[Any], table_output: TableOutput) -> None:
    """Print the table of a verb that ran a campaign, or write it to the stream of events."""
    if (events := _events(table_output)) is None:
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
    from volbench.api.many_campaigns import open_campaigns
    from volbench.model.campaign.planned_run import RunState
    from volbench.present.tables.expectations_table import expectations_table
    from volbench.present.tables.results_table import result_tables

    opened = open_campaigns(layout.root)
    opened.store_tables()
    states = dict(opened.runs)
    for run in printed:
        if states[run].state is not RunState.LOST:
            states[run] = replace(states[run], reason="")
    tables = result_tables(opened, states, is_brief=table_output.is_brief)
    verdicts = opened.expect() if opened.expects else []
    answers = expectations_table(verdicts, is_brief=table_output.is_brief)
    if (events := _events(table_output)) is None:
        table_output.write(*tables, lead=[answers] if verdicts else [])
        return verdicts
    from volbench.present.tables.render_table import render_table
    from volbench.present.terminal.event_records import results_record

    rows = json.loads(render_table(tables[0], "json", width=None))
    answered = json.loads(render_table(answers, "json", width=None))
    events.write(results_record(rows, expectations=answered))
    return verdicts


def _show_warmup(layout: Layout, campaign: Campaign, table_output: TableOutput) -> None:
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
