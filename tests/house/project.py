"""Names of the scripts and extensions of the project, and programs that are run for a check."""

import subprocess
from typing import Any

SCRIPTS = (
    *("scripts/setup", "scripts/lock", "scripts/get-prometheus", "scripts/cluster-build"),
    *("scripts/cluster-start", "scripts/test", "scripts/demo", "scripts/docs"),
    *("scripts/torture", "scripts/test-systems", "scripts/build-image", ".ci/run"),
)
# Folders that import the core; neither the core nor another extension imports them
EXTENSIONS = {
    *("catalogue", "confirming", "importer", "kubernetes", "lab", "monitoring", "watching")
}


def run(
    *command: object,
    check: bool = False,
    **options: Any,  # noqa: ANN401 - those of subprocess.run
) -> subprocess.CompletedProcess[str]:
    """Run a program, and keep what it prints."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*map(str, command)], check=check, capture_output=True, text=True, **options
    )
    return done
