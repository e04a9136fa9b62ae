"""Manifests of a controller: valid under strict schemas; and what its script does."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.kubernetes.controller_scripts import calls, controller_spec, start_script
from tests.extensions.kubernetes.schemas import NEWEST, problems
from tests.waiting import PATIENCE_S, until
from volbench.errors import InputError
from volbench.extensions.kubernetes.controllers import (
    CONTROLLER_LABEL,
    controller_objects,
    reader_pod,
)


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize("user", [0, 65532])
def test_manifests_are_valid(version: str, user: int) -> None:
    """Under the strict schemas of the newest versions, also those of the pod that fetches."""
    *others, job = controller_objects(controller_spec(run_as_user=user), owner_uid="1-2")
    for manifest in (*others, job, reader_pod(job, "1-2")):
        assert problems(manifest, version) == []
        assert manifest["metadata"]["labels"][CONTROLLER_LABEL] == "nightly"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Not a label"),
        ("name", "x" * 41),
        ("folder_size", "much"),
        ("profiles", {"quick.yaml": "#" * 10**6}),
    ],
)
def test_specifications_that_a_cluster_cannot_store_are_refused(field: str, value: object) -> None:
    """Before anything is made."""
    with pytest.raises(InputError):
        controller_spec(**{field: value})


def start(
    folder: Path, *, status: int = 0, wait: bool = False, **more: object
) -> subprocess.Popen[bytes]:
    """Start the script of a controller with a stub of volbench, in a folder for results."""
    *_, job = controller_objects(controller_spec(**more))
    return start_script(folder, job, STATUS=str(status), **({"WAIT": "1"} if wait else {}))


def test_the_controller_runs_then_resumes(tmp_path: Path) -> None:
    """The first pod runs the campaign; one that replaces it resumes what it finds."""
    assert start(tmp_path).wait(PATIENCE_S) == 0
    assert start(tmp_path).wait(PATIENCE_S) == 0
    run = "run /submitted/quick.yaml --claim-size 250Gi --k8s --yes --output nightly"
    assert calls(tmp_path) == [run, "resume nightly"]


@pytest.mark.parametrize("address", ["10.0.0.5", "::"])
def test_metrics_are_served_after_a_resume_too(tmp_path: Path, address: str) -> None:
    """On the port that Prometheus finds at the pod, and for others than the pod itself."""
    served: dict[str, Any] = {"metrics": f"{address}:9400"}
    *_, job = controller_objects(controller_spec(**served))
    template = job["spec"]["template"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == "9400"
    assert template["spec"]["containers"][0]["ports"][0]["containerPort"] == 9400
    assert all(problems(job, version) == [] for version in NEWEST)
    for _ in range(2):
        start(tmp_path, arguments=("--metrics", "9400"), **served).wait(PATIENCE_S)
    first, second = calls(tmp_path)
    at = f"--metrics {address}:9400"
    assert f"--metrics 9400 --k8s --yes {at} --output nightly" in first
    assert second == f"resume nightly {at}"


def test_the_controller_passes_on_a_stop_request(tmp_path: Path) -> None:
    """The shell is process 1 of the container, and alone receives the signal."""
    process = start(tmp_path, wait=True)
    until((tmp_path / "nightly" / "campaign.json").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
