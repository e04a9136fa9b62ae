"""Specification of a controller for tests, and its script with a stub of volbench."""

import os
import subprocess
from pathlib import Path

from volbench.extensions.kubernetes.cluster import Manifest
from volbench.extensions.kubernetes.controllers import RESULTS_MOUNT, ControllerSpec

STUB = """\
#!/bin/sh
echo "$@" >>calls
case $1 in
run)
    for folder; do :; done
    mkdir -p "$folder"; echo {} >"$folder/campaign.json"
    [ -z "$WAIT" ] || exec sleep 60 ;;
esac
exit "$STATUS"
"""
"""Stand-in for volbench: records its arguments, and ends as the environment says."""


def controller_spec(**more: object) -> ControllerSpec:
    """Return a specification with most fields set, some of them changed."""
    usual: dict[str, object] = {
        "name": "nightly",
        "namespace": "disktest",
        "image": "registry.example.com/volbench:1",
        "arguments": ("--claim-size", "250Gi"),
        "profiles": {"quick.yaml": "name: quick\n"},
        "folder_class": "fast",
        "secret": "passwords",
        "image_pull_policy": "Always",
        "image_pull_secrets": ("registry",),
    }
    return ControllerSpec(**{**usual, **more})  # type: ignore[arg-type]  # fields by name


def start_script(folder: Path, job: Manifest, **environment: str) -> subprocess.Popen[bytes]:
    """Start the script of a Job with a stub of volbench, in a folder for results."""
    shell, option, script, *arguments = job["spec"]["template"]["spec"]["containers"][0]["command"]
    program = folder / "bin" / "volbench"
    program.parent.mkdir(exist_ok=True)
    program.write_text(STUB, encoding="utf-8")
    program.chmod(0o755)
    own = {"PATH": f"{program.parent}:{os.environ['PATH']}", **environment}
    own_tmp = folder / "bin" / "tmp"
    own_tmp.mkdir(exist_ok=True)
    here = script.replace("/tmp", str(own_tmp)).replace(RESULTS_MOUNT, str(folder))
    return subprocess.Popen([shell, option, here, *arguments], env=own)


def calls(folder: Path) -> list[str]:
    """Return the arguments of each call of volbench."""
    path = folder / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
