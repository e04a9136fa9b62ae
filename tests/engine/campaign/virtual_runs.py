"""Runs of the engine in virtual time: a simulated volume answers instead of fio, at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from tests.execute.fake import FakeProcess
from tests.lab.virtual_run import VirtualVolume
from volbench.engine.run import run_once
from volbench.lab.scenario import Scenario


@contextmanager
def virtual_fio(scenario: Scenario) -> Iterator[None]:
    """Let each run of this process write what fio would have written on a new volume."""
    volume = VirtualVolume(scenario)

    def start(self: run_once._Execution) -> FakeProcess:
        attempt = self._attempt
        (section,) = attempt.run.sections
        done = volume.run(
            attempt.run.options,
            job_options=section.options,
            name=section.name,
            sample_s=attempt.run.sample_s,
            device_sample_s=attempt.run.device_sample_s,
            seed=attempt.run.seed % 1000,
        )
        for name, text in done.files.items():
            (attempt.directory.folder.path / name).write_text(text, encoding="utf-8")
        process = FakeProcess(pid=os.getpid())
        attempt.on_start(process)
        attempt.directory.sync()
        return process

    with mock.patch.object(run_once._Execution, "start", start):  # noqa: SLF001 - the seam to fio
        yield
