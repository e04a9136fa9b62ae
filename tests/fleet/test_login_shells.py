"""Login shells of all kinds: what is sent arrives as it is, and programs outlive the connection."""

from __future__ import annotations

import pytest

from tests.execute.host_files import text_of
from tests.fleet import texts
from tests.fleet.hosts import Fleet
from tests.fleet.ways import executor_for

pytestmark = pytest.mark.root

WORDS = ("a b", "two\nlines", "", "\\n", "it's", '"$HOME"', "~", "~0101", "!!", "*", "`id`", "ä%s")


@pytest.mark.parametrize("shell", texts.SHELLS)
def test_any_login_shell_will_do(hosts: Fleet, shell: str) -> None:
    """Arguments keep every character; the scripts that start and watch a program work."""
    with executor_for(hosts, hosts[0], user=shell) as machine:
        printed = machine.run(["printf", "%s|", *WORDS]).stdout
        assert printed == "".join(f"{word}|" for word in WORDS)
        folder = machine.work_folder("/unused", name=f"shell-{shell}")
        machine.write_files({f"{folder}/": ""})
        machine.write_files({f"{folder}/text": "one\ntwo\n"})
        assert text_of(machine, f"{folder}/text") == "one\ntwo\n"
        script = "echo begin\necho end"
        process = machine.start(["sh", "-c", script], cwd=folder, stderr=f"{folder}/stderr")
        assert process.wait(30) == 0
        assert process.read_output() == "begin\nend\n"
        assert len(machine.survey()[1]) == 8
        machine.remove_work_folder(folder)
