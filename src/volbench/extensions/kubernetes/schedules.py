"""Schedules on a cluster: CronJobs that run a campaign, upload it and judge the trend.

Fields: Kubernetes API reference, versions 1.35 to 1.37.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from socket import gethostname
from urllib.parse import quote

import click

from volbench.cli.options import Quantity
from volbench.errors import (
    InputError,
    RegressionError,
    TransportError,
    UndecidedError,
    VolbenchError,
    quoted,
)
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.cluster_spec import option, text_option
from volbench.extensions.kubernetes.controllers import (
    CAMPAIGN,
    FUNCTIONS,
    SCHEDULE,
    ControllerSpec,
    controller_labels,
    controller_objects,
    create_owned,
    job_spec,
    owner_of,
    schedule_settings,
)
from volbench.extensions.kubernetes.leases import POD_VARIABLE
from volbench.extensions.kubernetes.manifests import access_manifests, make_object
from volbench.store.layout import is_address
from volbench.units import parse_duration

_JOB_VARIABLE = "VOLBENCH_JOB"  # Environment variable with the name of the pod's Job
# A Pushgateway answers within milliseconds; no verdict depends on it.
_PUSH_S = 10.0
_MAX_MESSAGE = 1000  # The API takes 1,024 characters.
_REASONS = {
    RegressionError.exit_code: "ExpectationFailed",
    UndecidedError.exit_code: "ExpectationUndecided",
}

# Names the campaign by the time for which its Job was due: the name of the Job ends with it, in
# minutes. A Job that was made by hand gives its own name. After the campaign, all that are not in
# the bucket yet are uploaded, then the trend is judged. Root reads copies only from a folder to
# which nobody else can write, and an emptyDir can be written by all.
_NIGHT = f"""\
{FUNCTIONS}[ "$(id -u)" -ne 0 ] || chmod 755 /tmp
schedule=$campaign
due=${{{_JOB_VARIABLE}#"$schedule-"}}
case $due in
*[!0-9]*) campaign=${_JOB_VARIABLE} ;;
*) campaign=$schedule-$(date -u -d "@$((due * 60))" +%Y-%m-%dT%H%MZ) ;;
esac
{CAMPAIGN}for folder in *; do
    [ -e "$folder/campaign.json" ] && [ ! -e "$folder/.uploaded" ] || continue
    run volbench upload "$folder" "$upload/$folder"
    if [ "$code" -eq 0 ]; then touch "$folder/.uploaded"; else [ "$ended" -ne 0 ] || ended=$code; fi
done
run volbench k8s judge "$schedule" --ended "$ended"
for folder in *; do [ ! -e "$folder/.uploaded" ] || rm -rf -- "$folder"; done
exit "$code"
"""


def parse_trend(text: str) -> tuple[str, ...]:
    """Return options of volbench trend, which are checked as it would check them."""
    from volbench.cli.compare import trend

    try:
        options = tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"--trend {text!r}: {error}", hint="close each quote") from error
    if any(option.partition("=")[0] == "--webhook" for option in options):
        raise InputError(
            "the URL of a webhook would be stored in a ConfigMap, which is not secret",
            hint="put it into a Secret as VOLBENCH_WEBHOOK, and name that with --secret",
        )
    with trend.make_context("volbench trend", [".", *options]):
        return options


@dataclass(frozen=True, kw_only=True)
class ScheduleSpec(ControllerSpec):
    """A schedule on a cluster."""

    cron: str  # minute, hour, day, month and weekday
    service_account: str = text_option(
        "--service-account",
        "NAME",
        "Account with the rights of volbench k8s role. Default: a new one, created with the "
        "schedule.",
    )
    upload: str = text_option(
        "--upload", "s3://BUCKET/PREFIX", "Bucket and prefix of all campaigns.  [required]"
    )
    time_zone: str = text_option(
        "--time-zone", "NAME", "Time zone of CRON, such as Europe/Berlin.", "Etc/UTC"
    )
    time_limit_s: int = option(
        "--time-limit",
        default=86400,
        text="1d",
        type=Quantity("TIME", lambda text: max(1, round(parse_duration(text)))),
        show_default=True,
        help="Maximum time for a campaign, its upload and the trend.",
    )
    start_limit_s: int = option(
        "--start-limit",
        default=3600,
        text="1h",
        type=Quantity("TIME", lambda text: max(10, round(parse_duration(text)))),
        show_default=True,
        help="Skip a campaign that cannot start within this time.",
    )
    history: int = option(
        "--history",
        default=7,
        type=click.IntRange(1, 100),
        show_default=True,
        metavar="N",
        help="Number of finished Jobs, and of failed ones, to keep in the cluster.",
    )
    trend: tuple[str, ...] = option(
        "--trend",
        default=(),
        text="",
        type=Quantity("OPTIONS", parse_trend),
        help="Options of volbench trend, in quotes.",
    )
    push_metrics: str = text_option(
        "--push-metrics", "URL", "Prometheus Pushgateway for the result of each campaign."
    )

    def __post_init__(self) -> None:
        """Refuse a missing bucket too."""
        super().__post_init__()
        if not is_address(self.upload):
            raise InputError(
                "the bucket for the campaigns is missing",
                hint="the trend is followed there: --upload s3://BUCKET/PREFIX",
            )
        if self.push_metrics and not self.push_metrics.startswith(("http://", "https://")):
            raise InputError(
                f"--push-metrics {self.push_metrics} is not a web address",
                hint="write it like http://pushgateway.monitoring:9091",
            )


def schedule_objects(spec: ScheduleSpec, *, owner_uid: str = "") -> list[Manifest]:
    """Return all objects of a schedule in the order of their creation, the owner first.

    The cluster role and its binding have no owner, as they belong to no namespace.
    """
    owner, claim, _ = controller_objects(spec, owner_uid=owner_uid)
    settings = {
        "upload": spec.upload,
        "trend": spec.trend,
        "push_metrics": spec.push_metrics,
        "has_own_account": not spec.service_account,
    }
    owner["data"][SCHEDULE] = json.dumps(settings)
    job = job_spec(spec, script=_NIGHT)
    (program,) = job["template"]["spec"]["containers"]
    own_job = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    program["env"].append({"name": _JOB_VARIABLE, "valueFrom": own_job})
    content = {
        "schedule": spec.cron,
        "timeZone": spec.time_zone,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": spec.start_limit_s,
        "successfulJobsHistoryLimit": spec.history,
        "failedJobsHistoryLimit": spec.history,
        "jobTemplate": {
            "metadata": {"labels": controller_labels(spec.name)},
            "spec": job | {"activeDeadlineSeconds": spec.time_limit_s},
        },
    }
    cron_job = make_object(
        "CronJob",
        spec.name,
        namespace=spec.namespace,
        labels=controller_labels(spec.name),
        owner=(spec.name, owner_uid),
        spec=content,
    )
    if spec.service_account:
        return [owner, claim, cron_job]
    access = access_manifests(namespace=spec.namespace, name=spec.name, owner_uid=owner_uid)
    return [owner, claim, *access, cron_job]


def create_schedule(cluster: Cluster, spec: ScheduleSpec, *, dry_run: bool) -> None:
    """Create the objects of a schedule; if one is refused, those before it are removed.

    Args:
        dry_run: whether the cluster only checks them.
    """
    checked = {"ConfigMap", "PersistentVolumeClaim", "CronJob"}  # roles are bound once they exist
    for manifest in schedule_objects(spec):
        if manifest["kind"] in checked:
            cluster.create(manifest, dry_run=True)
    if not dry_run:
        remove = f"volbench k8s cancel {quoted(spec.name)} {cluster.options}"
        create_owned(
            cluster, spec, lambda uid: schedule_objects(spec, owner_uid=uid), remove=remove
        )


def judge_campaigns(cluster: Cluster, name: str, *, ended: int) -> int:
    """Run volbench trend on the campaigns of a schedule, and report problems.

    Args:
        name: of the schedule.
        ended: exit code of its last campaign.

    Returns:
        The exit code of the campaign, else that of the trend, else that of a failed report.
    """
    settings = schedule_settings(owner_of(cluster, name))
    argv = [sys.executable, "-m", "volbench", "trend", settings["upload"], "--json"]
    done = subprocess.run(  # noqa: S603 - volbench itself
        [*argv, *settings["trend"]], capture_output=True, text=True, check=False
    )
    trends = json.loads(done.stdout or "{}")
    click.echo(f"{trends.get('summary', '')}\n{done.stderr}".strip(), err=True)
    warnings = []
    if ended:
        # with the network of the node, the host name of a pod is that of the node
        pod = os.environ.get(POD_VARIABLE) or gethostname()
        output = f"its output: kubectl -n {cluster.namespace} logs {pod}"
        reason = _REASONS.get(ended, "CampaignFailed")
        warnings.append((reason, f"exit code of volbench run: {ended}; {output}"))
    if done.returncode:
        is_regression = done.returncode == RegressionError.exit_code
        warnings.append(("Regression" if is_regression else "TrendFailed", done.stderr.strip()))
    reports = [partial(_report_event, cluster, name, *warning) for warning in warnings]
    if settings["push_metrics"]:
        states = Counter(trend["state"] for trend in trends.get("trends", ()))
        text = _metrics(ended, done.returncode, states)
        reports.append(partial(_push, settings["push_metrics"], name, text))
    code = ended or done.returncode
    for report in reports:
        try:
            report()
        except VolbenchError as error:
            click.echo(f"not reported: {error.message}", err=True)
            code = code or error.exit_code
    return code


def _report_event(cluster: Cluster, name: str, reason: str, message: str) -> None:
    """Create an event of a schedule, which kubectl describe cronjob shows."""
    schedule = cluster.read("CronJob", name) or {"metadata": {}}
    now = cluster.server_time().strftime("%Y-%m-%dT%H:%M:%SZ")
    meant = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name}
    meant |= {"namespace": cluster.namespace, "uid": schedule["metadata"].get("uid", "")}
    event = make_object(
        "Event",
        f"{name}.{secrets.token_hex(8)}",
        namespace=cluster.namespace,
        labels=controller_labels(name),
        involvedObject=meant,
        type="Warning",
        reason=reason,
        message=message[:_MAX_MESSAGE],
        source={"component": "volbench"},
        firstTimestamp=now,
        lastTimestamp=now,
        count=1,
    )
    cluster.create(event)


def _metrics(ended: int, judged: int, states: Mapping[str, int]) -> str:
    """Return the result of a campaign and of the trend in the text format of Prometheus."""
    from volbench.analyse.compare.workload_trends import State

    lines = []
    for name, samples in (
        ("volbench_campaign_exit_code", {"": ended}),
        ("volbench_trend_exit_code", {"": judged}),
        ("volbench_trends", {f'{{state="{state}"}}': states.get(state, 0) for state in State}),
        ("volbench_judged_timestamp_seconds", {"": round(time.time())}),
    ):
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{labels} {value}" for labels, value in samples.items()]
    return "".join(f"{line}\n" for line in lines)


def _push(address: str, name: str, text: str) -> None:
    """Replace the metrics of a schedule on a Pushgateway.

    Path and method: README of prometheus/pushgateway 1.11.
    """
    import urllib3

    url = f"{address.rstrip('/')}/metrics/job/volbench/schedule/{quote(name)}"
    try:
        answer = urllib3.request("PUT", url, body=text, timeout=_PUSH_S, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise TransportError(f"{address} cannot be reached: {error}") from error
    if answer.status >= 300:
        raise TransportError(f"{address} refused the metrics: status {answer.status}")
