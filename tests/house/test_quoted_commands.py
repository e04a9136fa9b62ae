"""Commands in messages can be pasted: paths and names in them are quoted for a shell."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import volbench
from tests.command_line import call
from tests.finished_campaign import half_finished
from volbench.cli.main import VERBS
from volbench.errors import quoted

SOURCE = Path(volbench.__file__).parent
QUOTED_ALREADY = {
    "options",  # of a cluster, joined for a shell
    "paths",  # of campaigns, joined for a shell
    "target",  # of the lab: options whose values are quoted
    "size",
    "curve",
    "rule",  # identifiers of volbench
    "kind",
    "by",
    "mode",
    "geteuid()",  # numbers of the system
}
# A command up to the value in question; prose may follow a command after a comma or a colon
COMMAND = re.compile(
    rf"(?:^|[\s(])(?:volbench (?:{'|'.join(VERBS)})|umount|mount|mkdir|rm|chmod|chown)\b[^;:,]*$"
)


def unquoted(source: str) -> Iterator[str]:
    """Yield the values in commands of messages that are not quoted, with their lines."""
    for text in ast.walk(ast.parse(source)):
        if not isinstance(text, ast.JoinedStr):
            continue
        before = ""
        for part in text.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                words = ast.unparse(part.value)
                is_safe = re.match(r"quoted\(", words) or words.split(".")[-1] in QUOTED_ALREADY
                is_safe = is_safe or words.isupper()  # constants
                if COMMAND.search(before) and not is_safe:
                    yield f"{part.lineno}: {words}"
                before += "X"


def test_an_unquoted_path_is_found() -> None:
    """The search sees paths of commands, and nothing in prose."""
    assert list(unquoted('f"continue: volbench resume {root} --yes"')) == ["1: root"]
    assert list(unquoted('f"create it: mkdir -m 700 {root}/mine"')) == ["1: root"]
    assert list(unquoted('f"see: volbench compare {quoted(a)} {b}"')) == ["1: b"]
    assert not list(unquoted('f"volbench resume {quoted(root)}; it has {count} runs"'))


@pytest.mark.slow
def test_commands_in_messages_are_quoted() -> None:
    """A folder with a space or a quote in its name gives a command that works."""
    found = [
        f"{path.relative_to(SOURCE)}:{place}"
        for path in SOURCE.rglob("*.py")
        for place in unquoted(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_hint_can_be_pasted(tmp_path: Path) -> None:
    """The command of a hint leads to the same folder, whatever its name."""
    layout = half_finished(tmp_path / "of 'today' $(x)")
    done = call("status", "--follow", layout.root)
    assert done.returncode == 9
    assert f"volbench resume {quoted(layout.root)}; or see:" in done.stderr
