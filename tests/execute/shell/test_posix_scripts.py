"""What is sent to a host's shell, put to real shells of this machine."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.execute.loopback import LoopbackChannel
from volbench.errors import OutputError, TransportError
from volbench.execute.shell import posix_scripts
from volbench.execute.shell.file_facts import parse_stat
from volbench.execute.shell.remote_script import ScriptCall, call_script, script_argv
from volbench.execute.ssh.ssh_channel import command_line

SHELLS = ["sh", "dash", "bash", "zsh", "ksh", "csh", "tcsh", "fish"]
PRESENT = [shell for shell in SHELLS if shutil.which(shell)]


def sent(shell: str, script: str, *arguments: str) -> list[str]:
    """Run a script by a login shell, as sshd does, and return the lines after the mark."""
    line = command_line(script_argv(script, "mark", *arguments))
    done = subprocess.run([shell, "-c", line], check=False, capture_output=True)
    mark, _, rest = done.stdout.decode("utf-8", "surrogateescape").partition("\n")
    assert mark == "mark", done.stderr
    return rest.splitlines()


@pytest.mark.parametrize("shell", PRESENT)
@pytest.mark.parametrize(
    "word", ["a b", "it's", '"', "$HOME", "`id`", "*", "-n", "", "ü", "\udcff", "#x", "a;b"]
)
def test_every_shell_passes_arguments_on(shell: str, word: str) -> None:
    """Whatever the login shell is, the script gets its arguments as they are."""
    assert sent(shell, 'echo "[$1]" "$#"', word, "x") == [f"[{word}] 2"]


def test_a_command_that_can_not_be_sent_is_refused() -> None:
    """Too long a line, and one with a zero byte, fail here, not over there."""
    with pytest.raises(TransportError, match="too long"):
        command_line(["cat", "x" * 200_000])
    with pytest.raises(TransportError, match="NUL byte"):
        script_argv(posix_scripts.READ, "mark", "a\0b")


def test_marks_differ() -> None:
    """No output can be made to contain the mark of a later call."""
    channel = LoopbackChannel()
    call = ScriptCall(posix_scripts.READ, ("/proc/version",), "reading")
    assert len({call_script(channel, call).mark for _ in range(20)}) == 20


def test_scripts_stand_on_one_line() -> None:
    """Line ends within quotes end a command of csh, and fish reads backslashes there."""
    texts = [value for name, value in vars(posix_scripts).items() if name.isupper()]
    found = [text for text in texts if isinstance(text, str)]
    assert len(found) > 10
    assert [text for text in found if "\n" in text or "\\" in text] == []


@pytest.mark.parametrize(
    "text", ["", "81a4 5", "81a4 x 0 0 1 4 0 W", "zz 1 0 0 1 4 0 W", "81a4 5 0 0 1 4"]
)
def test_a_stat_that_says_something_else_is_an_error(text: str) -> None:
    """Another program's output is not taken for facts."""
    with pytest.raises(OutputError, match="not eight numbers"):
        parse_stat(text)


def test_a_stat_is_read() -> None:
    """Mode and device numbers are hexadecimal, the rest is decimal."""
    found = parse_stat("61b0 5 fd 1 77 0 0 12.000000345\n")
    assert (found.kind, found.device, found.rdev, found.inode) == ("block", (0, 5), (253, 1), 77)
    assert found.identity == (0, 5, 77, 12_000_000_345)
    found = parse_stat("83ff 64769 0 0 9 4 1000 W\n")
    assert (found.device, found.owner, found.mode) == ((253, 1), 1000, 0o1777)
    assert found.born_ns == 0, "busybox prints no time of birth"
