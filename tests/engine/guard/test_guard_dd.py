"""The guard before dd: it writes unless it is told to read, and then needs the same leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.engine.conftest import Disks, check_now
from volbench.engine.guard.run_guard import RunConsent
from volbench.engine.guard.volume_targets import find_volume
from volbench.errors import RefusedError
from volbench.execute.local import LocalExecutor
from volbench.fio.jobs.render_job import planned_files
from volbench.model.campaign.planned_run import Run, Section
from volbench.model.profile.profile_model import Tool

SIZES = {"bs": "1048576", "size": "4194304"}


def dd_refusal(
    executor: LocalExecutor, target: str, options: Mapping[str, str], *, allow: Sequence[str] = ()
) -> str:
    """Pass a dd run through a guard that was told it only reads; return why it is refused."""
    run = Run(
        id="1-j-r1",
        profile="p",
        job="j",
        tool=Tool.DD,
        volume=find_volume(executor, role="data", target=target),
        sections=(Section(name="j", options={**SIZES, **options}),),
    )
    try:
        check_now(
            executor,
            run,
            RunConsent(campaign_dir="/", allow_destroy=tuple(allow)),
            files=planned_files(run),
        )
    except RefusedError as error:
        return error.message
    return ""


@pytest.mark.parametrize("options", [{}, {"rw": "write"}])
def test_dd_needs_permission_for_a_foreign_file(
    executor: LocalExecutor, tmp_path: Path, options: dict[str, str]
) -> None:
    """A dd job that names no direction writes, so a foreign file is safe from it."""
    path = tmp_path.resolve() / "precious"
    path.write_text("x", encoding="utf-8")
    assert dd_refusal(executor, str(path), options).startswith(
        f"{path} exists and was not created by volbench"
    )
    assert dd_refusal(executor, str(path), options, allow=[str(path)]) == ""


def test_dd_reads_a_foreign_file(executor: LocalExecutor, tmp_path: Path) -> None:
    """A dd job that reads needs no leave."""
    path = tmp_path.resolve() / "precious"
    path.write_text("x", encoding="utf-8")
    assert dd_refusal(executor, str(path), {"rw": "read"}) == ""


class TestDevices:
    """dd on real block devices."""

    pytestmark = pytest.mark.root

    @pytest.mark.parametrize("options", [{}, {"rw": "write"}])
    def test_dd_needs_permission_for_a_device(
        self, executor: LocalExecutor, disks: Disks, options: dict[str, str]
    ) -> None:
        """A dd job that names no direction does not overwrite a device unasked."""
        device = disks.attach()
        assert dd_refusal(executor, device, options) == f"job j would overwrite {device}"
        assert dd_refusal(executor, device, options, allow=[device]) == ""

    def test_dd_on_a_mounted_device_is_refused(self, executor: LocalExecutor, disks: Disks) -> None:
        """No leave lets dd write to a mounted device; reading it stays possible."""
        device = disks.attach()
        disks.format(device)
        point = disks.mount(device)
        expected = f"{device} is mounted, or one of its partitions is: {point}"
        assert dd_refusal(executor, device, {}, allow=[device]) == expected
        assert dd_refusal(executor, device, {"rw": "read"}) == ""
