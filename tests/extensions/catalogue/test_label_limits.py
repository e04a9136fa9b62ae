"""Limits that the labels of a host name, the last source of them."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import volbench as api
from tests.command_line import Volbench
from tests.loopback_fleet import loopback_fleet
from volbench.extensions.catalogue import machine_types
from volbench.extensions.catalogue.class_limits import label_limits
from volbench.extensions.catalogue.volume_type import GIB
from volbench.model.document.document_model import Document
from volbench.model.document.yaml_text import read_document
from volbench.model.profile.profile_settings import Limits

BOTH = "labels volume_type and flavor of the host"


@pytest.mark.parametrize(
    ("labels", "size_bytes", "iops", "origin"),
    [
        ({"volume_type": "azure/P15"}, None, 1100, "label volume_type of the host"),
        ({"volume_type": "P15"}, None, 1100, "label volume_type of the host"),
        ({"volume_type": "aws/gp2"}, 500 * GIB, 1500, "label volume_type of the host"),
        ({"volume_type": "aws/gp2"}, None, None, ""),  # its limits depend on the size
        ({"volume_type": "aws/io2"}, 500 * GIB, None, ""),  # and these are provisioned
        ({"volume_type": "our fast one"}, None, None, ""),
        ({"flavor": "Standard_B2s"}, None, None, "label flavor of the host"),
        ({"volume_type": "azure/P30", "flavor": "azure/Standard_B2s"}, None, 5000, BOTH),
        ({}, None, None, ""),
    ],
)
def test_labels_name_a_type_and_a_machine(
    labels: dict[str, str], size_bytes: int | None, iops: float | None, origin: str
) -> None:
    """Only what the catalogue knows, and what needs no more than the size."""
    limits = label_limits(labels, size_bytes=size_bytes) or Limits()
    assert (limits.iops, limits.origin) == (iops, origin)
    assert limits.machine == ("azure/Standard_B2s" if "flavor" in labels else "")


def test_labels_of_an_inventory_are_the_last_source(tmp_path: Path, volbench: Volbench) -> None:
    """A host with a label has its limits, with their origin; declared ones replace them."""
    (tmp_path / "null.yaml").write_text(
        "name: none\ndefaults: {ioengine: 'null', size: 4m, rw: randread, runtime: 2s}\n"
        "jobs: {reads: {}}\n"
    )
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        text = fleet.inventory.read_text().replace("volumes:", "limits: {iops: 10}, volumes:", 1)
        text = text.replace("volumes:", "labels: {volume_type: azure/P15}, volumes:")
        fleet.inventory.write_text(text)
        done = volbench(
            *("run", "null.yaml", "--inventory", fleet.inventory, "--output", "out", "--yes"),
            "--allow-shared-folder",
        )
    assert done.returncode == 0, done.stderr
    runs = api.open_campaign(tmp_path / "out").campaign.runs
    found = {run.host: (run.limits.iops, run.limits.origin) for run in runs}
    assert found == {"vm0": (10, ""), "vm1": (1100, "label volume_type of the host")}


def test_many_hosts_read_the_catalogue_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They ask at the same time, from a thread each."""
    read: list[str] = []

    def noting(text: str, kind: type[Document], *, path: str, what: str, needs: str) -> Document:
        read.append(path)
        time.sleep(0.01)  # other threads get their turn here
        return read_document(text, kind, path=path, what=what, needs=needs)

    monkeypatch.setattr(machine_types, "read_document", noting)
    machine_types.parse_machines.cache_clear()  # as in a new process
    labels = {"flavor": "azure/Standard_B2s"}
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: label_limits(labels, size_bytes=None), range(8)))
    assert None not in found
    assert len(read) == len(set(read)) > 0
