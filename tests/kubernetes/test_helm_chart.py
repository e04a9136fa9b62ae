"""Helm chart of a schedule: rendered with its own values, it is what the schedule would create."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command_line import call
from tests.kubernetes.controller_scripts import controller_spec
from tests.kubernetes.schemas import NEWEST, problems
from volbench.errors import InputError
from volbench.kubernetes.helm_chart import write_chart
from volbench.kubernetes.schedules import ScheduleSpec, schedule_objects

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
