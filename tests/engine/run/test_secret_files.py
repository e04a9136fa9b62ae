"""A run gets its passwords by its environment, on this machine and on others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fio.runs import run_on
from tests.waiting import PATIENCE_S
from volbench.engine.run.run_directory import RunDirectory
from volbench.engine.run.secret_files import with_secrets
from volbench.errors import InputError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.planned_run import Volume, VolumeKind
from volbench.store.layout import RunFolder

SECRET = "correct horse; $(echo no)"  # noqa: S105 - of no server
RUN = run_on("/data").model_copy(
    update={
        "volume": Volume(role="data", kind=VolumeKind.NBD, target="nbd://user:***@h/x"),
        "host": "local",
    }
)
LOOK = 'echo "$VOLBENCH_DATA_PASSWORD" >seen; tr "\\0" "\\n" <"/proc/$$/cmdline" >arguments; ls -A'


@pytest.mark.parametrize("is_here", [True, False])
def test_the_program_has_it_in_its_environment_only(tmp_path: Path, *, is_here: bool) -> None:
    """Neither its arguments nor its folder have it once it has started."""
    executor: Executor = LocalExecutor()
    if not is_here:
        executor = AgentExecutor(SubprocessChannel("here"), work_folder=str(tmp_path / "work"))
    folder = tmp_path / "run"
    folder.mkdir()
    directory = RunDirectory(executor, RunFolder(folder), name="key/run-0")
    argv = with_secrets(
        directory, RUN, ["sh", "-c", LOOK], {"VOLBENCH_DATA_PASSWORD": SECRET, "OTHER": "x"}
    )
    assert SECRET not in " ".join(argv)
    private = Path(directory.path_of(".secrets"))
    assert private.stat().st_mode & 0o777 == 0o700
    process = directory.start(argv, stderr="stderr", longest_s=PATIENCE_S)
    assert process.wait(PATIENCE_S) == 0, Path(directory.path_of("stderr")).read_text()
    assert Path(directory.path_of("seen")).read_text() == f"{SECRET}\n"
    assert SECRET not in Path(directory.path_of("arguments")).read_text()
    assert ".secrets" not in process.read_output()
    assert not private.exists()


def test_a_run_without_its_password_is_not_started(tmp_path: Path) -> None:
    """The message names the variable to set."""
    directory = RunDirectory(LocalExecutor(), RunFolder(tmp_path))
    with pytest.raises(InputError) as caught:
        with_secrets(directory, RUN, ["true"], {})
    assert "VOLBENCH_DATA_PASSWORD" in caught.value.hint
    assert with_secrets(directory, run_on("/data"), ["true"], {}) == ["true"]
