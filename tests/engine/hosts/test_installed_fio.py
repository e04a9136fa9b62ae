"""fio where it is missing, or hangs."""

from pathlib import Path

import pytest

from tests.execute.fake import FakeExecutor
from volbench.engine.hosts.host_facts import (
    require_fio,
)
from volbench.errors import FioError
from volbench.execute.agent import facts
from volbench.execute.local import LocalExecutor


def test_a_fio_that_hangs_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version is asked for in a bounded time, and the error says that it did not come."""
    monkeypatch.setattr(facts, "ANSWER_S", 0.2)
    fio = tmp_path / "fio"
    fio.write_text('#!/bin/sh\necho begin >>"$0.log"\nexec sleep 60\n')
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(FioError, match=r"fio does not print its version: no end in 0\.2 s"):
        require_fio(LocalExecutor())
    assert (tmp_path / "fio.log").read_text() == "begin\n"


def test_a_missing_fio_is_reported() -> None:
    """With the host that lacks it."""
    with pytest.raises(FioError, match="not installed on vm1"):
        require_fio(FakeExecutor(host="vm1"))
