"""A virtual machine that boots while its disk is watched and recorded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks.guests import make_guests, missing_programs

from tests.engine.conftest import Disks
from volbench.extensions.traces.trace_file import Kind, read_facts
from volbench.store.layout import TRACE

pytestmark = [pytest.mark.root, pytest.mark.slow]

SIZE_BYTES = 2 << 30
SCRIPT = Path(__file__).parents[3] / "scripts" / "guests"


@pytest.fixture(name="disks")
def _disks(tmp_path: Path) -> Iterator[Disks]:
    own = Disks(tmp_path)
    try:
        yield own
    finally:
        own.close()


@pytest.fixture(name="guests", scope="module")
def _guests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if missing := missing_programs():
        pytest.skip(f"not installed: {', '.join(missing)}; scripts/setup dev installs them")
    folder = tmp_path_factory.mktemp("guests") / "made"
    subprocess.run([SCRIPT, folder], check=True)
    return folder


def test_a_guest_boots_while_its_disk_is_recorded(
    guests: Path, disks: Disks, tmp_path: Path
) -> None:
    """It is emulated, since KVM may not run it here; that makes its I/Os later, not others."""
    device = disks.attach(disks.image(SIZE_BYTES))
    disks.format(device)
    mount = disks.mount(device)
    commands = make_guests(guests, mount, tmp_path, accelerator="tcg")
    words = ["--start", f"{commands.boot} {{n}}", "--until", f"{commands.is_up} {{n}}"]
    words += ["--stop", f"{commands.stop} {{n}}", "--for", "10m", "--trace", "-o", "storm"]
    done = subprocess.run(
        [sys.executable, "-m", "volbench", "watch", mount, *words],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Storm of storm" in done.stdout
    assert "1 machine" in done.stdout
    trace = tmp_path / "storm" / TRACE
    assert read_facts(trace).lost_events == 0
    requests = pq.read_table(trace, columns=["kind", "size_bytes"]).to_pandas()
    sizes = requests.groupby("kind")["size_bytes"].sum()
    # A boot reads kernel modules, libraries and services: 43 MB when this was written
    assert 20e6 < sizes[Kind.READ] < 200e6
    assert sizes[Kind.WRITE] > 1e6
    assert (requests["kind"] == Kind.FLUSH).sum() > 10
