"""Verb resume."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.check import refuse_unmet
from volbench.cli.confirmation import ask_secrets, confirm_destruction
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import HOST_KEYS, LIMIT, OWN_POLICY, connect
from volbench.cli.options import (
    ALLOW_EXEC,
    CAMPAIGN,
    GRACE,
    KEEP_FILES,
    consent_options,
    examples,
    flag,
    option_group,
    settings_options,
)
from volbench.cli.output import TableOutput, table_options
from volbench.cli.results import reported_errors, say_closing, show_results
from volbench.cli.start import execute
from volbench.cli.verb_groups import repeat_known_hosts

if TYPE_CHECKING:
    from volbench.api.campaign_drive import Continuation, ResumeRequest, StartPolicy


@click.command(
    "resume",
    cls=VerbCommand,
    epilog=examples("volbench resume results", "volbench resume results --retry-failed"),
)
@CAMPAIGN
@option_group(
    "request",
    "volbench.api.campaign_drive:ResumeRequest",
    settings_options(flag("--retry-failed", "Repeat failed runs too."), KEEP_FILES, GRACE),
    click.option(
        "--redo-step",
        "redo_steps",
        multiple=True,
        metavar="STEP|unfinished",
        help="Repeat a whole step on all clients: its number, or every step that only some "
        "finished.",
    ),
    LIMIT,
    ALLOW_EXEC,
    consent_options(
        click.option(
            "--allow-destroy",
            multiple=True,
            metavar="DEVICE",
            help="Allow this device of the plan to be overwritten: the device, or its content, has "
            "changed; repeatable. On another host: vm01:/dev/sdb.",
        )
    ),
    HOST_KEYS,
)
@OWN_POLICY
@click.option(
    "--without",
    multiple=True,
    metavar="HOST",
    help="Give up this host, which is gone for good: its unfinished runs are lost; repeatable.",
)
@click.option("--from-stdin", is_flag=True, hidden=True, help="Read the request from stdin.")
@additions("resume")
@table_options(has_output=False, has_events=True)
def resume(
    campaign: Path,
    *,
    request: ResumeRequest,
    policy: StartPolicy | None,
    without: tuple[str, ...],
    from_stdin: bool,
    added: Additions,
    table_output: TableOutput,
) -> None:
    """Continue the campaign in DIR: finished runs are kept and never run again.

    Of a watch that was killed, what it recorded until then is kept.

    Runs that continued on hosts of an inventory without a controller are found again. If the
    policy does not allow the campaign to continue without unreachable hosts, nothing new is
    started: active runs on the other hosts are completed, and their results fetched.
    """
    from volbench.api.campaign_drive import continuation
    from volbench.cli.background import read_request
    from volbench.store.archive import read_campaign
    from volbench.store.journal import read_history

    if from_stdin:
        request = read_request()
        repeat_known_hosts(request.host_keys.known_hosts)
        added = added.again(request.added)
    opened = read_campaign(campaign)
    if added.concluded(opened[0], opened[1].campaign, table_output):
        return
    for host in without:
        _give_up(host, campaign)
    stored = continuation(campaign, request, policy)
    hosts = stored.hosts(request.limits)
    if stored.is_done:
        click.echo(f"nothing to resume: no run of {campaign} is left to do", err=True)
        if not hosts and (stored.plan.hosts or not stored.history.in_use):
            _show_end(stored, table_output)
            return
    with (
        reported_errors(table_output),
        added.served() as listeners_of,
        added.revived(hosts, campaign) as present,
        connect(present, request.host_keys) as connected,
    ):
        reached = stored.reach(connected, allow_exec=request.allow_exec)
        may_go_on = reached.may_go_on(stored.plan)
        if reached.hosts:
            for error in reached.absent.values():
                click.echo(f"note: {error.message}", err=True)
            plan = stored.allowed(reached.hosts, request.consent)
            if devices := request.consent.allow_destroy:
                confirm_destruction(reached.hosts, plan, only=devices)
            secrets = ask_secrets(stored.needed, stored.settings.secrets) if may_go_on else {}
            settings = replace(stored.settings, settle_only=not may_go_on, secrets=secrets)
            verdicts = execute(
                reached.hosts,
                stored.layout,
                plan,
                settings=settings,
                table_output=table_output,
                listeners_of=listeners_of,
            )
            say_closing(stored.layout, table_output, expected=verdicts)
            refuse_unmet(verdicts, [stored.layout.root])
        if not may_go_on:
            reached.raise_absent(stored.plan, read_history(stored.layout.journal).states)


def _give_up(host: str, root: Path) -> None:
    from volbench.engine.campaign.cleanup import forget_host
    from volbench.present.terminal.listeners import listener_for
    from volbench.store.consent import read_own_campaign

    layout, archive, _ = read_own_campaign(root)
    with listener_for(sys.stderr) as listener:
        lost = forget_host(layout, archive.campaign, host, listener=listener)
    click.echo(f"{host} is given up; runs lost: {len(lost)}", err=True)


def _show_end(stored: Continuation, table_output: TableOutput) -> None:
    """Print the results of a campaign that holds nothing on its hosts; no host is contacted."""
    from volbench.engine.campaign.campaign_engine import check_finished, outcome_of

    with reported_errors(table_output):
        verdicts = show_results(stored.layout, table_output)
        say_closing(stored.layout, table_output, expected=verdicts)
        end = outcome_of(stored.plan, stored.history.states)
        check_finished(end, stored.layout.root, stored.plan)
        refuse_unmet(verdicts, [stored.layout.root])
