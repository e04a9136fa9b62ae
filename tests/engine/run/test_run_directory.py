"""A run gets its passwords by its environment, on this machine and on others."""

from pathlib import Path

import pytest

from tests.fio.runs import run_on
from tests.waiting import PATIENCE_S, until
from volbench.engine.run.run_directory import RunDirectory, secrets_of
from volbench.errors import InputError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Supervision
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
def test_secret_is_in_the_environment_only(tmp_path: Path, *, is_here: bool) -> None:
    """Neither the arguments of the program nor its folder have it."""
    remote = AgentExecutor(SubprocessChannel("vm1"), work_folder=str(tmp_path / "work"))
    try:
        folder = tmp_path / "run"
        folder.mkdir()
        executor = LocalExecutor() if is_here else remote
        directory = RunDirectory(executor, RunFolder(folder), name="key/run-0")
        secrets = secrets_of(RUN, {"VOLBENCH_DATA_PASSWORD": SECRET, "OTHER": "x"})
        assert list(secrets) == ["VOLBENCH_DATA_PASSWORD"]
        supervision = Supervision(environment=secrets)
        assert SECRET not in repr(supervision)
        process = directory.start(["sh", "-c", LOOK], stderr="stderr", supervision=supervision)
        assert process.wait(PATIENCE_S) == 0, Path(directory.path_of("stderr")).read_text()
        files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
        assert Path(directory.path_of("seen")).read_text() == f"{SECRET}\n"
        assert {"seen", "arguments", "stderr"} <= files
        for path in tmp_path.rglob("*"):
            if path.is_file() and path.name != "seen":
                assert SECRET not in path.read_text()
        until(lambda: not process.is_sampled)
    finally:
        remote.close()


def test_run_without_its_password_is_not_started() -> None:
    """The message names the variable to set."""
    with pytest.raises(InputError) as caught:
        secrets_of(RUN, {})
    assert "VOLBENCH_DATA_PASSWORD" in caught.value.hint
    assert secrets_of(run_on("/data"), {"OTHER": "x"}) == {}
