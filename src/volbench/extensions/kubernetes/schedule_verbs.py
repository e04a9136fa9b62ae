"""volbench k8s schedule and judge: campaigns that a cluster runs every night."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from volbench.cli.options import PATH, examples, flag, option_group
from volbench.cli.output import binary_output
from volbench.cli.verb_groups import VerbCommand
from volbench.errors import InputError, quoted
from volbench.extensions.kubernetes.cluster import ClusterAddress
from volbench.extensions.kubernetes.cluster_spec import spec_options
from volbench.extensions.kubernetes.pod_options import ADDRESS
from volbench.extensions.kubernetes.schedules import ScheduleSpec


@click.command(
    "schedule",
    cls=VerbCommand,
    epilog=examples(
        "volbench k8s schedule @daily --controller-image IMAGE --upload URI -- run P",
    ),
)
@click.argument("cron", metavar="CRON")
@click.option(
    "--name", default="", metavar="NAME", help="Name of the schedule. Default: the profile's."
)
@click.option(
    "--controller-image", required=True, metavar="IMAGE", help="Image with Python and volbench."
)
@option_group("described", dict, *spec_options(ScheduleSpec))
@flag("--dry-run", "Let the cluster check the manifests, print them, and create nothing.")
@click.option(
    "--helm",
    "chart",
    type=PATH,
    metavar="DIR",
    help="Write a Helm chart of the schedule into a new folder, without contacting a cluster.",
)
@ADDRESS
@click.argument("arguments", nargs=-1, required=True, metavar="-- run PROFILE... [OPTIONS OF RUN]")
def schedule(
    cron: str,
    *,
    name: str,
    controller_image: str,
    described: dict[str, Any],
    dry_run: bool,
    chart: Path | None,
    address: ClusterAddress,
    arguments: tuple[str, ...],
) -> None:
    """Run a campaign in the cluster at the times of CRON, and check the trend.

    A CronJob runs volbench run --k8s with the options after run, uploads the campaign to a new
    folder below --upload, and runs volbench trend on all campaigns there. A failed campaign, a
    failed expectation and a regression are reported as an event of the CronJob, in the exit code of
    its Job, and as metrics. One campaign runs at a time.
    """
    from volbench.extensions.kubernetes.schedules import create_schedule, schedule_objects
    from volbench.extensions.kubernetes.submitted_run import check_run, parse_run
    from volbench.model.document.yaml_text import yaml_documents

    verb, *run_arguments = arguments
    if verb != "run":
        raise InputError(
            f"only volbench run can be scheduled, not {verb}",
            hint="volbench k8s schedule '0 2 * * *' [OPTIONS] -- run PROFILE... [OPTIONS OF RUN]",
        )
    run = parse_run(run_arguments)
    described |= {"cron": cron, "image": controller_image, **run}
    described["name"] = name or next(iter(run["profiles"])).removesuffix(".yaml")[:40].strip("-")
    if chart is not None:
        from volbench.extensions.kubernetes.helm_chart import write_chart

        spec = ScheduleSpec(namespace=address.namespace or "default", **described)
        write_chart(chart, spec)
        place = f"{spec.name} {quoted(chart)} --namespace {spec.namespace}"
        click.echo(f"install it: helm install {place}", err=True)
        return
    with address.opened() as cluster:
        spec = ScheduleSpec(namespace=cluster.namespace, **described)
        check_run(cluster, run_arguments, account=spec.service_account, secret=spec.secret)
        create_schedule(cluster, spec, dry_run=dry_run)
    if dry_run:
        with binary_output("-", default_name="schedule.yaml") as sink:
            sink.write(yaml_documents(schedule_objects(spec)).encode())
        return
    click.echo(spec.name)
    click.echo(
        f"follow it: volbench k8s status {quoted(spec.name)} {cluster.options}; try it now: "
        f"kubectl -n {spec.namespace} create job --from=cronjob/{spec.name} {spec.name}-first",
        err=True,
    )


@click.command("judge", epilog=examples("volbench k8s judge NAME --namespace disktest"))
@click.argument("name", metavar="NAME")
@click.option(
    "--ended",
    default=0,
    type=click.IntRange(0, 255),
    metavar="CODE",
    help="Exit code of the last campaign; a failure is reported too.",
)
@ADDRESS
def judge(name: str, *, ended: int, address: ClusterAddress) -> None:
    """Run volbench trend on the campaigns of the schedule NAME, and report problems.

    The Job of a schedule runs this after each campaign. Exits with CODE unless it is 0, otherwise
    with the exit code of volbench trend: 10 on a regression.
    """
    from volbench.extensions.kubernetes.schedules import judge_campaigns

    with address.opened() as cluster:
        code = judge_campaigns(cluster, name, ended=ended)
    sys.exit(code)
