"""How much a verb says on standard error, and verbs in capitals."""

import sys
from pathlib import Path

import click
import pytest

from tests.command_line import Volbench
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


def test_verbs_and_chart_names_are_accepted_in_capitals(results: Path, volbench: Volbench) -> None:
    """Capitals are as good, in groups too."""
    assert volbench("IMPORT", results, "-o", "one").returncode == 0
    assert volbench("Profile", "LIST").returncode == 0
    assert volbench("plot", "HISTOGRAM", "one", "-o", "x.svg").returncode == 0


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
