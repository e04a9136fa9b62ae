"""``volbench import`` as a user calls it, and every reading verb on what it wrote."""

import re
import shutil
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.extensions.importer.sources import CASES, JSON, put, result_of


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    root = tmp_path / "my results"
    for host in ("vm1", "vm2"):
        shutil.copytree(CASES / "fio-3.33/logs-averaged", root / "azure" / host)
        put(root / "azure" / host / "mix.json", JSON)
    put(root / "aws" / "vm3" / "cut.json", JSON[:2000])
    put(root / "aws" / "vm3" / "mix.json", JSON)
    put(root / "chart.png", b"\x89PNG\0")
    return root


@pytest.mark.slow
def test_every_reading_verb_works_on_an_import(
    volbench: Volbench, results: Path, tmp_path: Path
) -> None:
    """show, check, plot, report and export take it like any other campaign."""
    pattern = "{provider}/{host}"
    done = volbench("import", results, "--labels", pattern, "--output", "campaign")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "campaign\n"
    assert (tmp_path / "campaign" / "tables" / "rules-stamp").exists()
    assert (
        "not imported: my results/aws/vm3/cut.json:78:2: fio's JSON cannot be parsed" in done.stderr
    )
    assert "malformed files: 1" in done.stderr
    shown = volbench("show", "campaign")
    assert shown.returncode == 0, shown.stderr
    assert "azure" in shown.stdout
    assert "aws" in shown.stdout
    words = "Imported results: measured outside volbench, imported at 20"
    assert words in shown.stderr
    for arguments in (
        ("show", "campaign", "--runs"),
        ("check", "campaign"),
        ("plot", "all", "campaign", "--output", str(tmp_path)),
        ("report", "campaign"),
        ("export", "campaign", "--format", "csv"),
    ):
        verb = volbench(*arguments)
        assert verb.returncode == 0, (arguments, verb.stderr)
        assert "Traceback" not in verb.stderr
    page = (tmp_path / "campaign" / "report" / "index.html").read_text()
    assert words in page
    assert "Files: my results/a" in page
    assert "WorkloadSpec for:" not in page


def test_a_problem_of_many_files_is_reported_once(volbench: Volbench, tmp_path: Path) -> None:
    """More than three are one line."""
    for number in range(4):
        put(tmp_path / "results" / f"empty{number}.json", b"")
    put(tmp_path / "results" / "good.json", JSON)
    many = volbench("import", "results", "-o", "many")
    lines = [line for line in many.stderr.splitlines() if line.startswith("not imported")]
    assert len(lines) == 1
    assert "results/empty0.json and 3 more: it is empty" in lines[0]
    for number in range(4):  # cut in different lines
        put(tmp_path / "results" / f"cut{number}.json", JSON[: 1000 * (number + 1)])
    cut = volbench("import", "results", "-o", "cut").stderr
    lines = [line for line in cut.splitlines() if "cannot be parsed" in line]
    assert len(lines) == 1
    assert re.match(r"not imported: results/cut0.json:\d+:\d+ and 3 more: fio's JSON", lines[0])
    assert "files with results: 1; logs: 0; malformed files: 4. " in many.stderr


def test_problems_of_one_kind_are_one_line(volbench: Volbench, tmp_path: Path) -> None:
    """Hundreds of copies, each of another file, are one kind; two kinds stay two lines."""
    for number in range(5):
        for name in ("a", "b"):
            put(tmp_path / "results" / f"{name}{number}.json", f"{JSON}{chr(10) * number}")
    put(tmp_path / "results" / "unknown.json", JSON.replace('"write" : {', '"append" : {'))
    lines = volbench("import", "results", "-o", "c").stderr.splitlines()
    copies = [line for line in lines if "a copy of" in line]
    assert len(copies) == 1
    assert copies[0].endswith(
        "b0.json: left out: a copy of results/a0.json; and 4 more of this kind"
    )
    assert sum("volbench does not know append of this fio" in line for line in lines) == 1


def test_exit_codes_tell_success_from_failure(
    volbench: Volbench, results: Path, tmp_path: Path
) -> None:
    """6 where nothing is left to import, or nothing may be malformed; 2 for wrong arguments."""
    strict = volbench("import", results, "--strict", "--output", "campaign")
    assert strict.returncode == 6
    assert "cut.json" in strict.stderr
    assert not (tmp_path / "campaign").exists()
    assert volbench("import", results / "chart.png", "--output", "campaign").returncode == 6
    assert volbench("import", tmp_path / "nothing", "--output", "campaign").returncode == 2
    unfit = volbench("import", results, "--labels", "{a}/{b}/{c}/{d}", "--output", "campaign")
    assert unfit.returncode == 2
    assert "write it like" in unfit.stderr
    assert volbench("import", results, "--output", "campaign").returncode == 0
    assert volbench("import", results, "--output", "campaign").returncode == 7


def test_an_import_can_not_be_resumed(volbench: Volbench, results: Path) -> None:
    """There is nothing to go on with, and what it says about devices is not of this machine."""
    volbench("import", results, "--output", "campaign")
    done = volbench("resume", "campaign", "--retry-failed")
    assert done.returncode == 3
    assert "is an import, which cannot be resumed" in done.stderr


def test_the_origin_of_results_is_not_a_difference(volbench: Volbench, tmp_path: Path) -> None:
    """Folders of the source and the name of a Ceph user do not keep results from being compared."""
    for site in ("a", "b"):
        for day in ("mon", "tue", "wed"):
            text = result_of("fio-3.33/logs-histogram", jobname="read", clientname=f"{site}{day}")
            put(tmp_path / "in" / day / site / "fio.json", text)
    imported = volbench("import", tmp_path / "in", "--labels", "*/{site}", "-o", tmp_path / "c")
    assert imported.returncode == 0, imported.stderr
    compared = volbench("compare", tmp_path / "c", "--between", "site")
    assert compared.returncode == 0, compared.stderr
    assert max(map(len, compared.stdout.splitlines())) < 200


def test_a_file_name_with_a_line_break_makes_no_line(volbench: Volbench, tmp_path: Path) -> None:
    """A name could otherwise imitate a message, or color the terminal."""
    name = "a\nnot imported: \x1b[31mall.json"
    put(tmp_path / "r" / name, JSON)
    put(tmp_path / "r" / "b.json", f"{JSON} ")
    done = volbench("import", "r", "--output", "campaign")
    assert done.returncode == 0, done.stderr
    checked = volbench("check", "campaign")
    assert r"a\nnot imported: \x1b[31mall.json" in done.stderr
    for printed in (done.stderr, checked.stdout):
        assert "\nnot imported:" not in printed
