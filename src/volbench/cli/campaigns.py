"""Verb resume."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.additions import Additions, additions
from volbench.cli.help_pages import VerbCommand
from volbench.cli.hosts import (
    HOST_KEYS,
    LIMIT,
    OWN_POLICY,
    StartPolicy,
    connect,
    named_limits,
    with_policy,
)
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
from volbench.cli.verb_groups import repeat_known_hosts
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.cli.resumption import ResumeRequest
    from volbench.model.campaign.planned_run import Campaign
    from volbench.store.journal import History
    from volbench.store.layout import Layout


def _resume_request(**values: Any) -> ResumeRequest:  # noqa: ANN401 - click passes options by name
    from volbench.cli.resumption import ResumeRequest

    return ResumeRequest(**values)


@click.command(
    "resume",
    cls=VerbCommand,
    epilog=examples("volbench resume results", "volbench resume results --retry-failed"),
)
@CAMPAIGN
@option_group(
    "request",
    _resume_request,
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
    from volbench.cli.check import refuse_unmet
    from volbench.cli.execution import ask_secrets, confirm_destruction, execute, reported_errors
    from volbench.cli.resumption import read_request
    from volbench.engine.campaign.campaign_state import is_left
    from volbench.engine.campaign.resume_plan import allow_anew, hosts_to_reach, resume_on
    from volbench.model.campaign.planned_run import RunState
    from volbench.store.archive import read_campaign
    from volbench.store.consent import read_own_campaign
    from volbench.store.journal import read_history

    if from_stdin:
        request = read_request()
        repeat_known_hosts(request.host_keys.known_hosts)
        added = added.again(request.added)
    opened = read_campaign(campaign)
    if added.concluded(opened[0], opened[1].campaign, table_output):
        return
    layout, archive, seal = read_own_campaign(campaign)
    plan = with_policy(archive.campaign, policy)
    for host in without:
        _give_up(host, layout, plan)
    history = read_history(layout.journal)
    settings = replace(
        request.execution if policy is None else policy.waiting(request.execution),
        redo_steps=_parse_steps(request.redo_steps, plan),
    )
    hosts = hosts_to_reach(plan, history.states, named_limits(request.limits, campaign))
    left = [
        run
        for run in plan.runs
        if is_left(history.states.get(run.id, RunState.PLANNED), retry_failed=settings.retry_failed)
    ]
    if not (left or settings.redo_steps):
        click.echo(f"nothing to resume: every run of {campaign} is done", err=True)
        hosts = tuple(host for host in hosts if host.name in history.in_use)
        if not hosts and (plan.hosts or not history.in_use):
            _show_end(layout, plan, history, table_output)
            return
    with (
        reported_errors(table_output),
        added.served() as listeners_of,
        added.revived(hosts, campaign) as present,
        connect(present, request.host_keys) as connected,
    ):
        reached = resume_on(connected, archive, allow_exec=request.allow_exec)
        needing = plan.runs if settings.redo_steps else left
        reached = reached.needing({run.host for run in needing} or history.in_use)
        may_go_on = reached.may_go_on(plan)
        if reached.hosts:
            for error in reached.absent.values():
                click.echo(f"note: {error.message}", err=True)
            plan = allow_anew(reached.hosts, layout, plan, consent=request.consent, seal=seal)
            if devices := request.consent.allow_destroy:
                confirm_destruction(reached.hosts, plan, only=devices)
            secrets = ask_secrets(needing, settings.secrets) if may_go_on else {}
            settings = replace(settings, settle_only=not may_go_on, secrets=secrets)
            verdicts = execute(
                reached.hosts,
                layout,
                plan,
                settings=settings,
                table_output=table_output,
                listeners_of=listeners_of,
            )
            refuse_unmet(verdicts)
        if not may_go_on:
            reached.raise_absent(plan, read_history(layout.journal).states)


def _give_up(host: str, layout: Layout, plan: Campaign) -> None:
    """Record that a host is gone for good, without contacting it."""
    from volbench.engine.campaign.cleanup import forget_host
    from volbench.present.terminal.listeners import listener_for

    with listener_for(sys.stderr) as listener:
        lost = forget_host(layout, plan, host, listener=listener)
    click.echo(f"{host} is given up; runs lost: {len(lost)}", err=True)


def _show_end(layout: Layout, plan: Campaign, history: History, table_output: TableOutput) -> None:
    """Print the results of a campaign that holds nothing on its hosts; no host is contacted."""
    from volbench.cli.check import refuse_unmet
    from volbench.cli.execution import reported_errors, show_results
    from volbench.engine.campaign.campaign_engine import check_finished, has_made_hosts, outcome_of

    with reported_errors(table_output):
        verdicts = show_results(layout, table_output)
        end, are_kept = outcome_of(plan, history.states), not has_made_hosts(plan)
        check_finished(end, layout.root, total=len(plan.runs), are_hosts_kept=are_kept)
        refuse_unmet(verdicts)


def _parse_steps(texts: Sequence[str], campaign: Campaign) -> frozenset[int]:
    """Return the numbers of steps, and `UNFINISHED` for the word."""
    from volbench.engine.campaign.campaign_state import UNFINISHED

    last = max((run.step for run in campaign.runs), default=0)
    steps = set()
    for text in texts:
        number = int(text) if text.isdecimal() else 0
        if text != "unfinished" and not 1 <= number <= last:
            raise InputError(
                f"--redo-step {text}: there is no such step",
                hint=f"write a number from 1 to {last}, or the word unfinished",
            )
        steps.add(number or UNFINISHED)
    return frozenset(steps)
