"""Start of a campaign from the command line: its options, plan, questions, run and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.confirmation import ask_secrets, confirm_destruction, confirm_length, print_notes
from volbench.cli.fio_verb import say_overrides
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
from volbench.cli.results import event_stream, reported_errors, show_results, show_warmup
from volbench.cli.verb_groups import connecting_words, is_quiet, name_campaign

if TYPE_CHECKING:
    from volbench.analyse.compare.expected_bounds import Verdict
    from volbench.engine.campaign.campaign_state import Settings
    from volbench.engine.campaign.prepare import CampaignRequest, Prepared
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.event import Listener
    from volbench.model.campaign.planned_run import Campaign, Consent
    from volbench.store.layout import Layout


_MAX_WARNINGS = 5  # Before a plan; more are not read


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
    from volbench.plan.expansion.met_defects import met_defects
    from volbench.plan.profile.profile_document import profile_warnings
    from volbench.store.consent import create_signed_campaign

    say_overrides()
    with reported_errors(table_output):
        prepared = prepare(hosts, request)
        runs = prepared.campaign.runs
        of_profiles = (text for each in request.profiles for text in profile_warnings(each, runs))
        versions = {host.name: host.fio_version for host in prepared.hosts}
        defects = met_defects(runs, versions)
        warnings = [*warnings_of(prepared.campaign), *defects, *of_profiles]
        for warning in warnings[:_MAX_WARNINGS]:
            click.echo(f"warning: {warning}", err=True)
        if more := len(warnings[_MAX_WARNINGS:]):
            click.echo(f"{more} more: volbench profile check", err=True)
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
        from volbench.api.campaign_drive import ResumeRequest
        from volbench.cli.background import resume_in_background
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
    from volbench.engine.campaign.campaign_engine import left_out
    from volbench.plan.expansion.estimate import expected_s
    from volbench.present.tables.plan_tables import runs_table
    from volbench.present.terminal.campaign_text import estimate_words

    runs = prepared.campaign.runs
    expected = {run.id: seconds for run in runs if (seconds := expected_s(run)) is not None}
    is_brief = table_output.is_brief and not table_output.is_wide
    table_output.write(runs_table(prepared.campaign, expected_s=expected, is_brief=is_brief))
    for words in left_out(prepared.campaign.absent):
        click.echo(words, err=True)
    print_notes(prepared)
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
    """Run a campaign with its progress and results, and return its profiles' answers.

    When the terminal is closed (SIGHUP) it goes on without one, and prints to its log.
    """
    from volbench.api import campaign_drive
    from volbench.api.live_rates import LiveRates
    from volbench.engine.run.stop_request import stop_on_signals
    from volbench.model.campaign.event import Event, RunEnded, RunsNotNeeded
    from volbench.present.terminal.controller_log import logged_listener
    from volbench.store.held_folder import hold_folder
    from volbench.store.journal import read_history

    printed: set[str] = set()

    def note_end(event: Event) -> None:
        if isinstance(event, RunEnded | RunsNotNeeded) and not is_quiet():
            runs = (event.run,) if isinstance(event, RunEnded) else event.runs
            printed.update(run.id for run in runs)

    with hold_folder(layout.root, made=layout.made):
        more: list[Listener] = [*listeners_of(layout), note_end, LiveRates(layout)]
        note_owner(layout.root)
        try:
            with (
                logged_listener(
                    layout,
                    events=event_stream(table_output),
                    more=more,
                    complete=connecting_words(),
                ) as listener,
                stop_on_signals(on_hangup=listener.detach, leaves=True) as stop,
            ):
                campaign_drive.execute(
                    layout, campaign, hosts, settings=settings, listener=listener, stop=stop
                )
        finally:
            history = read_history(layout.journal)
            is_shown = history.states and not has_answer
            verdicts = show_results(layout, table_output, printed=printed) if is_shown else []
            click.echo(f"campaign folder: {layout.root}", err=True)
            if campaign.repeats:
                for words in history.imprecise:
                    click.echo(f"warning: {words}", err=True)
    if any(run.extent for run in campaign.runs):
        show_warmup(layout, campaign, table_output)
    return verdicts
