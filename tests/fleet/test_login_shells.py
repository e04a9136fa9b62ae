"""Login shells of all kinds: what is sent arrives as it is, and programs outlive the connection."""

import time

import pytest

from tests.execute.host_files import text_of
from tests.fleet import texts
from tests.fleet.hosts import Fleet
from tests.fleet.ways import executor_for
from volbench.errors import TransportError
from volbench.execute.agent.files import write_files

pytestmark = pytest.mark.root

WORDS = ("a; &|>b", "two\nlines", "", "\\n", "it's", '"$HOME"', "~0101", "!!", "*", "`id`", "ä%s")


@pytest.mark.parametrize("shell", texts.SHELLS)
def test_every_login_shell_works(hosts: Fleet, shell: str) -> None:
    """Arguments keep every character; the scripts that start and watch a program work."""
    with executor_for(hosts, hosts[0], user=shell) as machine:
        printed = machine.run(["printf", "%s|", *WORDS]).stdout
        assert printed == "".join(f"{word}|" for word in WORDS)
        folder = machine.work_folder("/unused", name=f"shell-{shell}")
        machine.ask(write_files, {f"{folder}/": ""})
        machine.ask(write_files, {f"{folder}/text": "one\ntwo\n"})
        assert text_of(machine, f"{folder}/text") == "one\ntwo\n"
        script = "echo begin\necho end"
        process = machine.start(["sh", "-c", script], cwd=folder, stderr=f"{folder}/stderr")
        assert process.wait(30) == 0
        assert process.read_output() == "begin\nend\n"
        assert len(machine.survey()[1]) == 8
        machine.remove_work_folder(folder)


@pytest.mark.parametrize("shell", ["zsh", "tcsh", "fish"])
def test_a_profile_that_starts_another_shell_is_reported_quickly(hosts: Fleet, shell: str) -> None:
    """What it starts takes the requests for commands: that is an error at once, with the reason."""
    home = hosts[0].folder / f"run/home/{texts.USER}"
    (home / ".bashrc").write_text(f"exec {shell}\n", encoding="utf-8")
    begun_s = time.monotonic()
    try:
        with (
            executor_for(hosts, hosts[0], user="bash") as machine,
            pytest.raises(TransportError, match="login shell on h0 did not start Python") as caught,
        ):
            machine.run(["true"])
    finally:
        (home / ".bashrc").unlink()
    assert time.monotonic() - begun_s < 120
    assert "exec zsh" in caught.value.hint
