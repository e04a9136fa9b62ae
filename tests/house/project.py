"""Names of the scripts and extensions of the project."""

from __future__ import annotations

SCRIPTS = (
    "scripts/setup",
    "scripts/lock",
    "scripts/get-prometheus",
    "scripts/cluster-build",
    "scripts/cluster-start",
    "scripts/test",
    "scripts/demo",
    "scripts/docs",
    "scripts/torture",
    "scripts/test-systems",
    "scripts/build-image",
    ".ci/run",
)
# Folders that import the core; neither the core nor another extension imports them
EXTENSIONS = {"kubernetes", "catalogue", "importer", "lab", "monitoring", "watching"}
