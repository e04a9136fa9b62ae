"""volbench audit --k8s on a cluster, of volumes with a filesystem and of raw ones."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.command_line import call
from tests.extensions.kubernetes.conftest import IMAGE, Desk

SHORT = (
    *("--for", "1m", "--set", "runtime=3s", "--set", "repeat=1", "--set", "limits.iops=1e12"),
    *("--set", "randread-4k-qd1=", "--set", "read-1m-qd4=", "--set", "read-1m-qd16="),
    *("--set", "read-1m-qd64=", "--set", "read-1m-qd256=", "--yes", "--json"),
)


def audited(desk: Desk, storage_class: str, *arguments: str) -> Mapping[str, object]:
    """Audit the volume of a new pod; return the row of its only limit."""
    done = call(
        *("audit", "--k8s", "--namespace", desk.api.namespace, "--storage-class", storage_class),
        *("-o", "audited", *IMAGE, *SHORT, *arguments),
        cwd=desk.folder,
    )
    assert done.returncode in {10, 11}, done.stderr
    (row,) = json.loads(done.stdout[done.stdout.rindex("[\n") :])
    return dict(row)


def test_a_volume_with_a_filesystem_is_audited(desk: Desk) -> None:
    """A file is written first; the queue depths that were tried are in the page."""
    row = audited(desk, "fast", "--size", "64Mi", "--scratch-size", "8m")
    assert (row["limit"], row["promised"], row["source"]) == ("read IOPS", 1e12, "as declared")
    assert row["verdict"] in {"falls short", "undecided"}
    assert str(row["queue_depths"]).startswith("16, 64")
    assert float(str(row["delivered"])) > 0
    page = call("audit", "audited", cwd=desk.folder)
    assert "I/Os in flight tried; the " in page.stdout
