"""How much a verb says, verbs in capitals, and questions before a long campaign."""

import sys
from pathlib import Path

import click
import pytest

from tests.command_line import Volbench, at_a_terminal, settings
from tests.extensions.importer.sources import JSON, put
from volbench.cli.output import progress_line
from volbench.cli.verb_groups import add_verbosity, questions_shown


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder with a result and a file that is cut off."""
    put(tmp_path / "results/a.json", JSON)
    put(tmp_path / "results/cut.json", JSON[:2000])
    return tmp_path / "results"


def test_quiet_prints_only_errors(results: Path, volbench: Volbench) -> None:
    """Remarks on standard error are left out, data and errors are not."""
    loud = volbench("import", results, "-o", "one")
    quiet = volbench("import", results, "-o", "two", "-q")
    assert "not imported" in loud.stderr
    assert (quiet.stdout, quiet.stderr) == ("two\n", "")
    again = volbench("import", results, "-o", "two", "--quiet")
    assert again.returncode != 0
    assert "hint:" in again.stderr


def test_verbose_prints_resource_usage_and_tracebacks(results: Path, volbench: Volbench) -> None:
    """The cost follows every verb; an error has the place where it arose."""
    done = volbench("import", results, "-o", "one", "-v")
    assert "s of CPU" in done.stderr
    again = volbench("import", results, "-o", "one", "-v")
    assert "Traceback" in again.stderr
    assert "refuse_used" in again.stderr
    assert "Traceback" not in volbench("import", results, "-o", "one").stderr


def test_prompts_are_shown_in_quiet_mode(capsys: pytest.CaptureFixture[str]) -> None:
    """What a question needs is said even then."""

    @click.command()
    def ask() -> None:
        click.echo("note", err=True)
        with questions_shown():
            click.echo("sure?", err=True)

    add_verbosity(ask).main(["-q"], standalone_mode=False)
    assert capsys.readouterr().err == "sure?\n"


def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that is drawn over, and cleared in the end; a pipe gets none."""
    with progress_line() as tell:
        tell("reading", 3, 3)
    assert not capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_line() as tell:
        tell("reading", 1, 2000)
        tell("reading", 2, 2000)
        tell("reading", 2000, 2000)
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown == ["", "reading: 1 of 2,000", "reading: 2,000 of 2,000", ""]


LONG = """
name: long
sample: 0
device_sample: 0
defaults: {ioengine: psync, size: 1m, bs: 4k, filename: f}
jobs:
  first: {rw: write, startdelay: 2h, runtime: 1s, time_based: 1}
"""


@pytest.fixture(name="long")
def _long(tmp_path: Path, scratch: Path) -> list[str]:
    profile = tmp_path / "long.yaml"
    profile.write_text(LONG)
    return ["run", str(profile), "--on", str(scratch), "--output", str(tmp_path / "out")]


def test_a_long_campaign_needs_confirmation(long: list[str], tmp_path: Path) -> None:
    """Anything but yes is a refusal, and nothing was made."""
    status, stderr = at_a_terminal(long, "n")
    assert status == 3, stderr
    assert "Estimated time: 2h" in stderr
    assert "will take a long time. Start it?" in stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "more"), [("y", ()), ("n", ("--yes",))])
def test_yes_starts_the_campaign(
    long: list[str], tmp_path: Path, typed: str, more: tuple[str, ...]
) -> None:
    """A y at the question, or --yes before it, goes on to the campaign."""
    short = settings("first.startdelay=", "first.time_based=", "first.runtime=2h")
    status, stderr = at_a_terminal([*long, *short, *more], typed)
    assert status == 0, stderr
    assert ("will take a long time" in stderr) is (typed == "y")
    assert (tmp_path / "out" / "campaign.json").exists()


def test_non_interactive_commands_are_never_prompted(long: list[str], volbench: Volbench) -> None:
    """Without a terminal the estimate is told, and the campaign begins."""
    slow = settings("first.runtime=2h", "first.time_based=", "first.startdelay=")
    done = volbench(*long, *slow)
    assert done.returncode == 0, done.stderr
    assert "Estimated time: up to about 2h" in done.stderr
    assert "will take a long time" not in done.stderr
