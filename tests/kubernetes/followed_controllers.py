"""Controllers in the test cluster: the way to its API server, their state and what they print."""

from __future__ import annotations

import json

from tests.command_line import call
from tests.kubernetes.conftest import Desk
from volbench.kubernetes import controllers
from volbench.kubernetes.cluster import Cluster, Manifest

PATIENCE_S = 180.0
ENDED = {"finished", "failed"}


def reach_the_api(job: Manifest, port: int) -> None:
    """Let the pod of a Job reach the API server: pods of the test cluster have no network."""
    pod = job["spec"]["template"]["spec"]
    pod["hostNetwork"] = True
    pod["containers"][0]["env"] += [
        {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(port)},
    ]


def status(desk: Desk, name: str) -> dict[str, str]:
    """Return the state of a controller as the command line prints it."""
    done = call("k8s", "status", name, "--namespace", desk.api.namespace, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    return dict(found)


def log_of(api: Cluster, name: str) -> str:
    """Return the last lines of a controller, for a test that fails."""
    return "\n".join(controllers.last_lines(api, controllers.find_controller(api, name), count=40))
