"""Schedules: valid manifests, the script of a night, and what is reported of a trend."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import Mock

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.command_line import call
from tests.extensions.kubernetes.controller_scripts import calls, controller_spec, start_script
from tests.extensions.kubernetes.metrics_gateway import gateway
from tests.extensions.kubernetes.schemas import NEWEST, problems
from tests.waiting import PATIENCE_S
from volbench.errors import ConnectError, InputError
from volbench.extensions.kubernetes import schedules
from volbench.extensions.kubernetes.controllers import CONTROLLER_LABEL
from volbench.extensions.kubernetes.schedules import (
    ScheduleSpec,
    create_schedule,
    judge_campaigns,
    schedule_objects,
)

BUCKET = "s3://bucket/nightly"
SCHEDULE = ("k8s", "schedule", "0 2 * * *", "--controller-image", "registry.example.com/volbench:1")


def spec(**more: object) -> ScheduleSpec:
    """Return a specification with most fields set, some of them changed."""
    usual = {**vars(controller_spec()), "cron": "0 2 * * *", "service_account": ""}
    return ScheduleSpec(**{**usual, **more})


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize("account", ["", "volbench"])
def test_manifests_are_valid(version: str, account: str) -> None:
    """Under the strict schemas of the newest versions, with an account of its own or another."""
    manifests = schedule_objects(spec(service_account=account), owner_uid="1-2")
    assert [problem for each in manifests for problem in problems(each, version)] == []
    kinds = [each["kind"] for each in manifests]
    assert ("ServiceAccount" in kinds) == (not account)
    cron_job = manifests[-1]["spec"]
    assert cron_job["concurrencyPolicy"] == "Forbid"
    job = cron_job["jobTemplate"]
    assert job["metadata"]["labels"][CONTROLLER_LABEL] == "nightly"
    assert job["spec"]["activeDeadlineSeconds"] == 86400
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == (account or "nightly")


def test_the_owner_owns_all_but_the_cluster_role() -> None:
    """What no namespace holds cannot have an owner in one."""
    owned = {
        each["kind"]: "ownerReferences" in each["metadata"]
        for each in schedule_objects(spec(), owner_uid="1-2")
    }
    assert [kind for kind, is_owned in owned.items() if not is_owned] == [
        "ConfigMap",
        "ClusterRole",
        "ClusterRoleBinding",
    ]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("upload", "", "the bucket for the campaigns is missing"),
        ("push_metrics", "pushgateway:9091", "is not a web address"),
    ],
)
def test_wrong_addresses_are_refused(field: str, value: str, words: str) -> None:
    """Before the cluster is asked."""
    with pytest.raises(InputError, match=words):
        spec(**{field: value})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--upload", BUCKET, "--", "warmup", "quick"), "only volbench run can be scheduled"),
        (("--upload", BUCKET, "--trend", "--no-such", "--", "run", "quick"), "--no-such"),
        (
            ("--upload", BUCKET, "--trend", "--webhook=https://h/x", "--", "run", "quick"),
            "a Secret",
        ),
        (("--upload", BUCKET, "--trend", "'", "--", "run", "quick"), "No closing quotation"),
        (("--upload", BUCKET, "--", "run", "quick", "--on", "/data"), "--on cannot be used"),
    ],
)
def test_arguments_are_checked(options: tuple[str, ...], words: str) -> None:
    """As the job would check them at night."""
    done = call(*SCHEDULE, *options)
    assert done.returncode == 2
    assert words in done.stderr


def night(folder: Path, job: str, *, status: str = "0", check: str = "0") -> int:
    """Run the script of a night in a folder for results, with a stub of volbench."""
    objects = schedule_objects(spec(upload=BUCKET))
    template = objects[-1]["spec"]["jobTemplate"]
    return start_script(folder, template, VOLBENCH_JOB=job, STATUS=status, CHECK=check).wait(
        PATIENCE_S
    )


def test_a_night_is_named_by_the_time_for_which_it_was_due(tmp_path: Path) -> None:
    """It is uploaded below the bucket, judged, and removed from the volume."""
    assert night(tmp_path, "nightly-29402040") == 0
    name = "nightly-2025-11-26T0200Z"
    assert calls(tmp_path) == [
        f"upload --check {BUCKET}",
        f"run /submitted/quick.yaml --size 250Gi --k8s --yes --output {name}",
        f"upload {name} {BUCKET}/{name}",
        "k8s judge nightly --ended 0",
    ]
    assert not (tmp_path / name).exists()


def test_a_job_made_by_hand_gives_its_name(tmp_path: Path) -> None:
    """Its name has no time."""
    night(tmp_path, "nightly-first")
    assert calls(tmp_path)[2] == f"upload nightly-first {BUCKET}/nightly-first"


def test_a_night_without_its_bucket_is_reported(tmp_path: Path) -> None:
    """Nothing is measured that cannot be uploaded, and the exit code is that of the check."""
    assert night(tmp_path, "nightly-29402040", check="4") == 4
    assert calls(tmp_path) == [f"upload --check {BUCKET}", "k8s judge nightly --ended 4"]


def test_a_campaign_that_could_not_be_uploaded_is_uploaded_the_next_night(tmp_path: Path) -> None:
    """It stays on the volume until then; the exit code is that of the first failure."""
    assert night(tmp_path, "nightly-29402040", status="9") == 9
    assert (tmp_path / "nightly-2025-11-26T0200Z" / "campaign.json").exists()
    assert night(tmp_path, "nightly-29403480") == 0
    uploaded = [line.split()[1] for line in calls(tmp_path) if line.startswith("upload n")]
    assert uploaded == [f"nightly-2025-11-{day}T0200Z" for day in ("26", "26", "27")]
    assert not list(tmp_path.glob("nightly-*"))


def test_what_is_left_on_an_unreachable_api_server_is_named() -> None:
    """Nothing can be removed then; the hint has the command that does it later."""

    def create(manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        if manifest["kind"] == "ServiceAccount" and not dry_run:
            raise ConnectError("away", hint="check the cluster")
        return {**manifest, "metadata": {**manifest["metadata"], "uid": "1-2"}}

    cluster = Mock(create=create, options="--namespace disktest")
    with pytest.raises(ConnectError) as caught:
        create_schedule(cluster, spec(), dry_run=False)
    assert caught.value.hint.endswith("volbench k8s cancel nightly --namespace disktest")
    cluster.delete.assert_not_called()


def judged(
    monkeypatch: pytest.MonkeyPatch, *, ended: int, trend: int, push: str = ""
) -> tuple[int, list[dict[str, Any]]]:
    """Judge with a stub of volbench trend; return the exit code and the events."""
    states = [{"state": "regression"}, {"state": "stable"}, {"state": "stable"}]
    printed = json.dumps({"summary": "3 campaigns", "trends": states})
    done = CompletedProcess([], trend, printed, "error: it dropped\n" if trend else "")
    monkeypatch.setattr(
        "volbench.extensions.kubernetes.schedules.subprocess.run", lambda *_, **__: done
    )
    owner, *_ = schedule_objects(spec(push_metrics=push))
    cluster = Mock(
        namespace="disktest", read=lambda kind, _: owner if kind == "ConfigMap" else None
    )
    cluster.server_time().strftime.return_value = "2026-11-26T02:00:00Z"
    code = judge_campaigns(cluster, "nightly", ended=ended)
    return code, [made.args[0] for made in cluster.create.call_args_list]


@pytest.mark.parametrize(
    ("ended", "trend", "code", "reasons"),
    [
        (0, 0, 0, []),
        (0, 10, 10, ["Regression"]),
        (0, 8, 8, ["TrendFailed"]),
        (10, 0, 10, ["ExpectationFailed"]),
        (11, 0, 11, ["ExpectationUndecided"]),
        (4, 10, 4, ["CampaignFailed", "Regression"]),
    ],
)
def test_what_is_wrong_becomes_an_event(
    monkeypatch: pytest.MonkeyPatch, ended: int, trend: int, code: int, reasons: list[str]
) -> None:
    """The exit code of the campaign goes before that of the trend; its pod has the output."""
    monkeypatch.setenv("VOLBENCH_POD", "nightly-29-abcde")
    found, events = judged(monkeypatch, ended=ended, trend=trend)
    assert found == code
    assert [event["reason"] for event in events] == reasons
    for event in events:
        assert problems(event, NEWEST[-1]) == []
        is_of_run = "exit code of volbench run" in event["message"]
        assert ("logs nightly-29-abcde" in event["message"]) is is_of_run


def test_metrics_are_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gauge of each state, and both exit codes; Prometheus' own parser reads them."""
    with gateway() as (address, taken):
        judged(monkeypatch, ended=0, trend=10, push=address)
    ((path, text),) = taken.items()
    assert path == "/metrics/job/volbench/schedule/nightly"
    samples = {
        (sample.name, sample.labels.get("state", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["volbench_trend_exit_code", ""] == 10
    assert samples["volbench_trends", "regression"] == 1
    assert samples["volbench_trends", "outside limits"] == 0


def test_a_gateway_that_is_away_fails_the_night(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else nobody would notice; a regression goes before it."""
    address = "http://127.0.0.1:9"
    assert judged(monkeypatch, ended=0, trend=0, push=address)[0] == 4
    assert f"not reported: {address} cannot be reached" in capsys.readouterr().err
    assert judged(monkeypatch, ended=0, trend=10, push=address)[0] == 10


def test_the_exit_code_of_judge_is_that_of_the_night(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Job fails by it."""
    monkeypatch.setattr(schedules, "judge_campaigns", lambda *_, **__: 10)
    opened = Mock()
    monkeypatch.setattr("volbench.extensions.kubernetes.cluster.open_cluster", lambda **_: opened)
    assert call("k8s", "judge", "nightly").returncode == 10
    opened.close.assert_called_once()
