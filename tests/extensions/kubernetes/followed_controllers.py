"""Controllers in the test cluster: the way to its API server, their state and what they print."""

import json
import sys
from pathlib import Path

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk
from tests.extensions.kubernetes.local_cluster import ROOT
from volbench.extensions.kubernetes import controllers
from volbench.extensions.kubernetes.cluster import Cluster, Manifest

PATIENCE_S = 180.0
ENDED = {"finished", "failed"}
_HOST_FOLDERS = ("/lib", "/lib64", "/usr/lib", sys.base_prefix, str(ROOT / "src"), sys.prefix)


def with_python(job: Manifest, port: int) -> None:
    """Mount this machine's Python into the pod of a Job, whose image has none of volbench."""
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for number, path in enumerate(dict.fromkeys(str(Path(own).resolve()) for own in _HOST_FOLDERS)):
        pod["volumes"].append({"name": f"host-{number}", "hostPath": {"path": path}})
        container["volumeMounts"].append(
            {"name": f"host-{number}", "mountPath": path, "readOnly": True}
        )
    reach_the_api(job, port)
    container["env"] += [
        {"name": "PYTHONPATH", "value": str(ROOT / "src")},
        {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        {"name": "PATH", "value": f"{Path(sys.prefix).resolve()}/bin:/usr/bin:/bin"},
    ]


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
    return "\n".join(
        controllers.last_lines(api, controllers.controllers_on(api, name)[0], count=40)
    )
