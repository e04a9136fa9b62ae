"""Commands, Python and flags that README.md and the help show, as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest

from tests.command_line import call
from volbench.cli.main import cli

FENCE = re.compile(
    r"(<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>sh|python)\n(?P<code>.*?)```", re.DOTALL
)
SMALL = {"run": "--set size=4m --set runtime=300ms", "measure": "--size 4m --runtime 1s --repeat 1"}
MAX_LINES = 150


def blocks(text: str, kind: str) -> list[str]:
    """Return the blocks of one kind that are not marked as left out."""
    found = [m for m in FENCE.finditer(text) if m["kind"] == kind]
    return [m["code"] for m in found if not m["why"]]


def run_line(line: str, folder: Path) -> None:
    """Run a line of a shell block: volbench in this process, small, and anything else by bash."""
    if not line.startswith("volbench "):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path}
        subprocess.run(["bash", "-euc", line], check=True, cwd=folder, env=env)
        return
    _, *words = shlex.split(line.replace("=$HOME", f"={folder}/os"), comments=True)
    words, into = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
    small = SMALL.get(words[0], "").split()
    one_cpu = ["--set", "cpus_allowed=0"] if words[0] == "run" and os.cpu_count() == 1 else []
    expanded = ([*map(str, sorted(folder.glob(w)))] if "*" in w else [w] for w in words)
    words = [word for some in expanded for word in some]
    place = words.index("--") if "--" in words else len(words)
    done = call(*words[:place], *small, *one_cpu, *words[place:], cwd=folder)
    assert done.returncode == 0, line + done.stdout + done.stderr
    if into:
        (folder / into).write_text(done.stdout, encoding="utf-8")


@pytest.fixture
def readme(root: Path) -> str:
    """Return the text of README.md."""
    return (root / "README.md").read_text(encoding="utf-8")


def test_every_command_runs(readme: str, tmp_path: Path) -> None:
    """The shell blocks run one after another in one folder, then the Python blocks."""
    (tmp_path / "os").mkdir()
    lines = "".join(blocks(readme, "sh")).splitlines()
    python = "\n".join(blocks(readme, "python"))
    assert any(line.startswith("volbench run") for line in lines)
    assert "open_campaign" in python
    for line in lines:
        run_line(line, tmp_path)
    with chdir(tmp_path):
        exec(compile(python, "README.md", "exec"), {})  # noqa: S102 - what readers paste


def test_the_page_for_fio_commands_is_short_and_runs(root: Path, tmp_path: Path) -> None:
    """Its shell blocks run one after another in one folder."""
    page = (root / "docs" / "how-to" / "i-have-a-fio-command.md").read_text(encoding="utf-8")
    assert len(page.split()) < 400
    for line in "".join(blocks(page, "sh")).splitlines():
        run_line(line, tmp_path)


def test_the_readme_is_short_and_hides_no_command(readme: str) -> None:
    """Each fenced command is either run above or says why not, and the page can be read at once."""
    assert "```console" not in readme
    assert "```bash" not in readme
    assert len(readme.splitlines()) <= MAX_LINES


TALK = {"-v", "--verbose", "-q", "--quiet"}
TABLE = {"--format", "--json", "--columns", "--wide"}
ORDER = {"--sort", "--raw"}
WITH_ORDER = {"show", "export"}
WITHOUT_TABLE = {
    # They print no table: a schema, a file, a folder, a sentence, or what a controller says.
    "import",
    *("k8s fetch", "k8s reap", "k8s render", "k8s submit", "lab up"),
    *("profile check", "profile import", "profile render", "report"),
}
WITH_SOME = {
    "export": {"--wide"},  # every column has its full width in a file
    "plot": {"--json", "--columns", "--wide"},  # its numbers are what the chart draws
}
"""Verb to the flags of tables that make no sense for it."""
WITHOUT_OUTPUT = {"resume"}  # it continues in the folder that it names


def verbs(command: click.Command, context: click.Context) -> Iterator[tuple[str, set[str]]]:
    """Yield every verb with the names of its options."""
    if not isinstance(command, click.Group):
        name = context.command_path.removeprefix("volbench ")
        yield name, {option for param in command.params for option in param.opts}
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from verbs(below, click.Context(below, info_name=name, parent=context))


FLAGS = dict(verbs(cli, click.Context(cli, info_name="volbench")))


@pytest.mark.parametrize("verb", FLAGS)
def test_every_verb_has_quiet_and_verbose(verb: str) -> None:
    """Every verb can say more, and nothing."""
    assert FLAGS[verb] >= TALK


@pytest.mark.parametrize("verb", FLAGS)
def test_only_verbs_with_tables_have_table_options(verb: str) -> None:
    """A verb that prints a table has all flags of tables, and any other verb has none of them."""
    wanted = set() if verb in WITHOUT_TABLE else TABLE - WITH_SOME.get(verb, set())
    assert FLAGS[verb] & TABLE == wanted
    assert FLAGS[verb] & ORDER == (ORDER if verb in WITH_ORDER else set())
    if wanted and verb not in WITHOUT_OUTPUT:
        assert FLAGS[verb] >= {"-o", "--output"}
