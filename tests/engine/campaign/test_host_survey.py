"""Surveys of hosts whose fio does not work."""

from pathlib import Path

import pytest

from volbench.engine.campaign.host_survey import survey
from volbench.engine.hosts.connected_host import ConnectedHost
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.model.campaign.host import Host

WORDS = "error while loading shared libraries: libaio.so.1"


@pytest.mark.parametrize("has_version", [True, False])
def test_the_error_of_a_broken_fio_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_version: bool
) -> None:
    """Whether it fails at once or only when it is to run: its own words are in the problem."""
    version = '[ "$1" = --version ] && { echo fio-3.33; exit 0; }\n' if has_version else ""
    fio = tmp_path / "fio"
    fio.write_text(f"#!/bin/sh\n{version}echo 'fio: {WORDS}' >&2\nexit 127\n")
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    executor = AgentExecutor(SubprocessChannel("vm1"), work_folder=str(tmp_path / "work"))
    (surveyed,) = survey([ConnectedHost(Host(name="vm1", address="192.0.2.1"), executor)])
    executor.close()
    assert WORDS in surveyed.problem
    assert "fio" in surveyed.hint
