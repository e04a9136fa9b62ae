"""Starting volbench is quick because each command imports only the libraries that it needs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import run
from volbench.cli.main import VERBS

HEAVY = {
    *("jinja2", "kubernetes", "matplotlib", "numpy", "openpyxl", "pandas"),
    *("paramiko", "pyarrow", "pydantic", "rich", "ruamel", "scipy"),
}
ROWS = {"numpy", "pyarrow", "pydantic"}
FRAMES = ROWS | {"pandas"}
MODEL = {"pydantic", "ruamel"}
ALLOWED: dict[str, set[str]] = {
    "--help": set(),
    "--version": set(),
    "profile list": set(),
    "profile show quick": MODEL,
    "price --list kamatera-azure": MODEL,
    "audit --list azure/P15": MODEL,
    "k8s storageclass ebs-gp3-retain": MODEL,
    "k8s render --role volbench": MODEL,
    "lab list": MODEL,
    "hosts --list --inventory {inventory}": MODEL,
    "run quick --dry-run --on {folder}": MODEL,
    "show {campaign}": ROWS,
    "show --runs {campaign}": ROWS,
    "check {campaign}": ROWS,
    "export {campaign}": ROWS,
    "export --frame series {campaign}": FRAMES,
    "plot iops {campaign} -o {folder}": FRAMES | {"matplotlib"},
    "plot iops --format html {campaign} -o {folder}": FRAMES | {"jinja2"},
    "report {campaign} -o {folder}/page.html": FRAMES | {"jinja2", "matplotlib"},
    **{f"{verb} --help": set() for verb in VERBS},
}
"""Command to the heavy libraries that it may import; a command that is not here may import all."""
WATCHED = """
import os, sys
import volbench.cli.main
for code in {codes!r}:
    if not os.fork():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            exec(code, {{}})
        except SystemExit as ended:
            assert not ended.code, ended.code
        os.write(2, (repr(sorted(sys.modules)) + "\\n").encode())
        os._exit(0)
    assert os.wait()[1] == 0, code
"""
"""Each code runs in a process forked from one that holds nothing but the command line."""


def heavy_after(*codes: str) -> list[set[str]]:
    """Return the heavy libraries that a new process holds after running each code."""
    done = run(sys.executable, "-c", WATCHED.format(codes=codes), check=True)
    modules = [ast.literal_eval(line) for line in done.stderr.splitlines() if line[:2] == "['"]
    assert len(modules) == len(codes), done.stderr
    return [HEAVY & {name.partition(".")[0] for name in names} for names in modules]


STARTS = """
import sys
from volbench.cli.main import main
from volbench.execute.local import LocalExecutor
start = LocalExecutor.start
def noting(*positional, **named):
    print("at a start", sorted(sys.modules), file=sys.stderr)
    return start(*positional, **named)
LocalExecutor.start = noting
main({arguments!r})
"""


def heavy_at_starts(arguments: list[str]) -> list[set[str]]:
    """Return the heavy libraries that a command holds at each start of a process beside it."""
    done = run(sys.executable, "-c", STARTS.format(arguments=arguments), check=True)
    lines = (line.partition("at a start ")[2] for line in done.stderr.splitlines())
    return [
        HEAVY & {name.partition(".")[0] for name in ast.literal_eval(line)}
        for line in lines
        if line
    ]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a folder to measure, an inventory of this machine, and a small finished campaign."""
    root = tmp_path_factory.mktemp("light")
    (root / "folder").mkdir()
    (root / "hosts.yaml").write_text("hosts:\n  here: {address: 127.0.0.1}\n")
    (root / "p.yaml").write_text("name: p\nsample: 0\njobs:\n  a: {rw: write, size: 1m}\n")
    on = ["--on", str(root / "folder"), "--output", str(root / "out")]
    command = (sys.executable, "-m", "volbench", "run", root / "p.yaml", *on)
    run(*command, stdin=subprocess.DEVNULL, check=True)
    return {
        "folder": str(root / "folder"),
        "inventory": str(root / "hosts.yaml"),
        "campaign": str(root / "out"),
    }


@pytest.fixture(scope="module")
def held(places: dict[str, str]) -> dict[str, set[str]]:
    """Return command to the heavy libraries that a process of it holds in the end."""
    lines = [[word.format(**places) for word in command.split()] for command in ALLOWED]
    codes = [f"volbench.cli.main.main({line!r})" for line in lines]
    found = heavy_after(*(f"import volbench.cli.main\n{code}" for code in codes))
    return dict(zip(ALLOWED, found, strict=True))


@pytest.fixture(scope="module")
def held_by_completion() -> dict[str, set[str]]:
    """Return verb to the heavy libraries that completing its options imports."""
    complete = (
        "from click.shell_completion import ShellComplete\n"
        "from volbench.cli.main import cli\n"
        "ShellComplete(cli, {{}}, 'volbench', '_C').get_completions([{verb!r}], '--')"
    )
    found = heavy_after(*(complete.format(verb=verb) for verb in VERBS))
    return dict(zip(VERBS, found, strict=True))


def test_importing_volbench_is_fast() -> None:
    """``import volbench`` imports no heavy library."""
    assert heavy_after("import volbench") == [set()]


@pytest.mark.slow
@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_imports_only_what_it_may(command: str, held: dict[str, set[str]]) -> None:
    """A real process of the command holds no heavy library beyond those in the table."""
    assert held[command] <= ALLOWED[command]


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_completion_is_fast(verb: str, held_by_completion: dict[str, set[str]]) -> None:
    """Completing the options of a verb imports no heavy library."""
    assert held_by_completion[verb] == set()


def test_no_run_waits_for_libraries_that_read_results(tmp_path: Path) -> None:
    """Before and between runs, logs and samples included, only the model's are imported."""
    profile, output = tmp_path / "p.yaml", tmp_path / "out"
    profile.write_text(
        "name: p\nsample: 250ms\nrepeat: 2\n"
        "jobs:\n  a: {rw: read, size: 1m, runtime: 1s, time_based: 1, rate_iops: 50}\n"
    )
    starts = heavy_at_starts(["run", str(profile), "--on", str(tmp_path), "-o", str(output)])
    assert len(starts) >= 2  # two runs, whose supervisors take the samples too
    assert set().union(*starts) <= MODEL


def test_no_watch_waits_for_libraries_that_read_results() -> None:
    """Its first sample comes once pydantic is imported: on a busy machine, seconds earlier."""
    before = "import volbench.extensions.watching.live_table, volbench.plan.inventory.named_hosts"
    assert heavy_after(before) == [{"pydantic"}]


def test_a_heavy_import_is_found() -> None:
    """The check sees a library that really was imported."""
    assert heavy_after("import numpy", "import json") == [{"numpy"}, set()]


def test_every_command_of_the_table_exists() -> None:
    """The table names verbs that are there."""
    assert {command.split()[0] for command in ALLOWED} - {"--help", "--version"} <= set(VERBS)
