"""Helm chart of a schedule: it is what the schedule would create, and Helm installs it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk
from tests.extensions.kubernetes.controller_scripts import controller_spec
from tests.extensions.kubernetes.followed_controllers import status
from tests.extensions.kubernetes.image import NAME
from tests.extensions.kubernetes.local_cluster import ROOT
from tests.extensions.kubernetes.schemas import NEWEST, problems
from tests.waiting import until
from volbench.errors import InputError
from volbench.extensions.kubernetes.helm_chart import write_chart
from volbench.extensions.kubernetes.schedules import ScheduleSpec, schedule_objects

ARGUMENTS = ("--size", "9Gi", "--storage-class", "fast", "--image", "registry.example.com/fio:1")
BRACES = "name: quick\nnote: '{{ .Values.none }} and {{'\n"
_TEMPLATE = re.compile(r'\{\{ (?:\.Values\.(?P<name>\w+)|"(?P<literal>\{\{)") \}\}')


def spec(**more: object) -> ScheduleSpec:
    """Return a specification with an account of its own, some fields changed."""
    usual = {
        **vars(controller_spec()),
        "cron": "@daily",
        "service_account": "",
        "arguments": ARGUMENTS,
        "profiles": {"quick.yaml": BRACES},
    }
    return ScheduleSpec(**{**usual, **more})


def by_kind(objects: list[Any]) -> list[Any]:
    """Return objects in an order of their own."""
    return sorted(objects, key=lambda item: str(item["kind"]))


def rendered(chart: Path, **changes: str) -> list[Any]:
    """Return the objects of a chart, as helm makes them of templates that only substitute."""
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8")) | changes
    used = set[str]()

    def text_of(found: re.Match[str]) -> str:
        used.update([found["name"]] if found["name"] else [])
        return found["literal"] or str(values[found["name"]])

    texts = [path.read_text(encoding="utf-8") for path in (chart / "templates").iterdir()]
    objects = [yaml.safe_load(_TEMPLATE.sub(text_of, text)) for text in texts]
    assert used == set(values)
    return by_kind(objects)


def test_a_chart_is_the_schedule(tmp_path: Path) -> None:
    """Braces of a profile are no templates; each value is used."""
    write_chart(tmp_path / "chart", spec())
    assert rendered(tmp_path / "chart") == by_kind(schedule_objects(spec()))


@pytest.mark.parametrize("version", NEWEST)
def test_other_values_make_the_schedule_of_another_cluster(tmp_path: Path, version: str) -> None:
    """As if it had been written for that one; its manifests are valid there."""
    write_chart(tmp_path / "chart", spec())
    changes = {"namespace": "other", "schedule": "0 2 * * *", "timeZone": "Europe/Berlin"}
    changes |= {"image": "other/volbench:2", "bucket": "s3://other/n", "storageClass": "slow"}
    arguments = tuple("slow" if word == "fast" else word for word in ARGUMENTS)
    expected = spec(
        namespace="other",
        cron="0 2 * * *",
        time_zone="Europe/Berlin",
        image="other/volbench:2",
        upload="s3://other/n",
        arguments=arguments,
    )
    found = rendered(tmp_path / "chart", **changes)
    assert found == by_kind(schedule_objects(expected))
    assert [problem for each in found for problem in problems(each, version)] == []


def test_a_chart_has_what_helm_lint_asks_for(tmp_path: Path) -> None:
    """Its rules for Chart.yaml (pkg/lint/rules/chartfile.go of Helm 3): API, name and version."""
    write_chart(tmp_path / "nightly", spec())
    chart = yaml.safe_load((tmp_path / "nightly/Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["apiVersion"], chart["type"]) == ("v2", "application")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", chart["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", chart["version"])
    assert isinstance(chart["appVersion"], str)
    values = yaml.safe_load((tmp_path / "nightly/values.yaml").read_text(encoding="utf-8"))
    assert all(isinstance(value, str) for value in values.values())


def test_a_line_break_in_an_option_adds_no_value(tmp_path: Path) -> None:
    """The command is a comment above the values."""
    write_chart(tmp_path / "chart", spec(arguments=(*ARGUMENTS, "--set", "note=a\nimage: evil")))
    values = yaml.safe_load((tmp_path / "chart/values.yaml").read_text(encoding="utf-8"))
    assert values["image"] == "registry.example.com/volbench:1"
    assert rendered(tmp_path / "chart")[3]["kind"] == "CronJob"


@pytest.mark.parametrize("cron", ['"; x', "{{ .Values.image }}", "a\\b", "a\nb"])
def test_a_value_that_would_change_the_manifest_is_refused(tmp_path: Path, cron: str) -> None:
    """Before anything is written; and a folder that exists is left alone."""
    with pytest.raises(InputError, match="cannot be a value"):
        write_chart(tmp_path / "chart", spec(cron=cron))
    assert not (tmp_path / "chart").exists()
    with pytest.raises(InputError, match="exists"):
        write_chart(tmp_path, spec())


def test_the_command_asks_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chart is made where no cluster can be reached, and says how it is installed."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    done = call(
        *("k8s", "schedule", "@daily", "--controller-image", "registry.example.com/volbench:1"),
        *("--upload", "s3://bucket/n", "--helm", tmp_path / "chart", "--namespace", "disktest"),
        *("--", "run", "quick", *ARGUMENTS),
    )
    assert done.returncode == 0, done.stderr
    assert "helm install quick" in done.stderr
    assert {item["kind"] for item in rendered(tmp_path / "chart")} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CronJob",
        "PersistentVolumeClaim",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }


@pytest.fixture
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what Helm stores on this machine to the test."""
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{name}_HOME", str(tmp_path / "helm"))


def helm(*arguments: str | Path) -> str:
    """Return what Helm prints; it is built with the cluster."""
    build = [str(ROOT / "scripts" / "cluster-build"), "--where"]
    place = subprocess.run(build, check=True, capture_output=True, text=True).stdout.strip()
    done = subprocess.run(
        [f"{place}/bin/helm", *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("_home")
def test_helm_renders_the_schedule(desk: Desk) -> None:
    """Without complaints, braces of a profile are no templates, and values may be changed."""
    write_chart(desk.folder / "chart", spec())
    linted = helm("lint", "--strict", desk.folder / "chart")
    assert "[WARNING]" not in linted
    assert "[ERROR]" not in linted
    changes = ("--set", "image=other:1", "--set", "schedule=@weekly")
    rendered = helm("template", "nightly", desk.folder / "chart", *changes)
    expected = schedule_objects(spec(image="other:1", cron="@weekly"))
    assert by_kind([*yaml.safe_load_all(rendered)]) == by_kind(expected)
    assert desk.left() == []


@pytest.mark.usefixtures("_home")
def test_a_release_is_upgraded_suspended_and_uninstalled(desk: Desk, job: Path) -> None:
    """The verbs of volbench find its schedule, but leave its objects to Helm."""
    place, chart = ("--namespace", desk.api.namespace), desk.folder / "chart"
    made = ("--controller-image", NAME, "--upload", "s3://results/nightly", "--name", "night")
    campaign = ("run", str(job), *IMAGE, "--size", "64Mi", "--storage-class", "fast")
    done = call("k8s", "schedule", "0 2 * * *", *made, *place, "--helm", chart, "--", *campaign)
    assert done.returncode == 0, done.stderr
    assert f"helm install night {chart} --namespace {desk.api.namespace}" in done.stderr
    helm("install", "night", chart, *place)
    assert (status(desk, "night")["state"], status(desk, "night")["cron"]) == (
        "scheduled",
        "0 2 * * *",
    )
    helm("upgrade", "night", chart, *place, "--set", "schedule=0 3 * * *")
    assert status(desk, "night")["cron"] == "0 3 * * *"
    cancelled = call("k8s", "cancel", "night", *place)
    assert cancelled.returncode == 0, cancelled.stderr
    command = f"helm uninstall night --namespace {desk.api.namespace}"
    assert f"suspended the schedule night, which Helm owns; remove it: {command}" in (
        cancelled.stderr
    )
    assert status(desk, "night")["state"] == "suspended"
    helm("uninstall", "night", *place)
    until(lambda: desk.left() == [])
    own = ("CronJob", "ServiceAccount", "Role", "RoleBinding")
    assert [desk.api.read(kind, "night") for kind in own] == 4 * [None]
    wide = f"night-volumes-{desk.api.namespace}"
    assert [desk.api.read(kind, wide) for kind in ("ClusterRole", "ClusterRoleBinding")] == 2 * [
        None
    ]
