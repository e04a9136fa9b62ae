"""Files of verbs that fail half-way, and text in CSV that a spreadsheet would run as a formula."""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.command_line import Volbench, call
from tests.golden import GOLDEN, copy_of

UNNAMED = [
    ("plot iops -o new.svg --csv d", "d/iops-chart.csv"),
    ("plot iops -o d", "d/iops.svg"),
    ("compare --chart d/new.svg", "d/new.csv"),
    ("report -o d", "d/index.html"),
    ("export --frame all -o d", "d/findings.csv"),
    ("show -o d", "d/results.txt"),
    ("import -o d/new", "d/.new.importing/file"),
]


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Return a recorded campaign with its tables."""
    return copy_of(GOLDEN[-1], tmp_path / "c")


@pytest.mark.parametrize(("words", "name"), UNNAMED)
def test_a_file_whose_name_was_not_typed_is_not_replaced(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, name: str
) -> None:
    """Unless volbench wrote it; and where it is refused, no other file is replaced either."""
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path)
    verb, *options = words.split()
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("my,own,data\n")
    inputs = [RESULT] if verb == "import" else [golden]
    inputs += [copy_of(GOLDEN[-1], tmp_path / "c2")] if verb == "compare" else []
    refused = call(verb, *options, *inputs)
    assert (refused.returncode, Path(name).read_text()) == (3, "my,own,data\n")
    assert str(Path(name).parent if verb == "import" else name) in refused.stderr
    assert not list(tmp_path.rglob("*new.svg"))


OF_CAMPAIGNS = [
    *(f"show --format {form}" for form in ("table", "json", "csv", "markdown")),
    *(
        f"export --format {form}"
        for form in ("csv", "json", "parquet", "xlsx", "markdown", "latex")
    ),
    *(f"plot p99 --format {form} --csv beside" for form in ("svg", "pdf", "html", "png")),
    *("check", "check --json", "status", "status --json", "export --format grafana", "report"),
    *("show --by job --json", "show --json --columns job,iops", "export --columns job"),
    *("export --frame findings --json", "check --expect iops>1 --junit beside", "plot all"),
]
TWICE = [
    *((f"{words} c", f"{words} other") for words in OF_CAMPAIGNS),
    ("profile list", "profile list --json"),
    ("profile show quick --json", "profile show aks-disk --json"),
    ("profile import a.fio", "profile import b.fio"),
    ("profile render quick --on .", "profile render quick --on sub"),
    ("hosts --json", "hosts --json --on ."),
    ("hosts --on a:/x --list --save y", "hosts --on b:/x --list --save y"),
    ("k8s render --role a", "k8s render --role b"),
    ("k8s storageclass ebs-gp3-retain", "k8s storageclass hyperdisk-extreme-retain"),
    ("lab show p15", "lab list"),
    ("price --list --json", "price --list --format csv"),
    ("export c --format openmetrics", "export c --format openmetrics --frame device"),
    ("compare c c2 --json", "compare c2 c --json --columns metric,verdict"),
    ("compare c c2 --chart y.svg", "compare other c2 --chart y.svg"),
]


@pytest.mark.parametrize(("first", "second"), TWICE)
def test_another_content_of_volbench_is_replaced(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """Each verb replaces its own output with that of other results, of each of its formats."""
    monkeypatch.chdir(tmp_path)
    copy_of(golden, tmp_path / "c2")
    (tmp_path / "sub").mkdir()
    (tmp_path / "stdout").write_bytes(RESULT.read_bytes())
    call("import", "stdout", "--label", "a=b", "-o", "other")
    for name in ("a", "b"):
        Path(f"{name}.fio").write_text(f"[{name}]\nrw=read\nsize=1m\n")
    for words in (first, second, first):
        done = call(*words.split(), *([] if " y" in words else ["-o", "o"]))
        assert done.returncode in {0, 8, 10, 11}, done.stderr
        assert any(map(os.path.exists, ("y", "y.svg", "o")))


@pytest.mark.parametrize(
    ("verb", "name"), [("export", "o.csv"), ("plot iops", "o.html"), ("show --json", "o.json")]
)
def test_a_full_disk_leaves_the_old_file(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str
) -> None:
    """The disk is full at the last instant: exit code 2, one sentence."""
    target = tmp_path / "place" / name
    target.parent.mkdir()
    target.write_text("[]\n")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("volbench.store.atomic_files.os.fsync", fail)
    done = call(*verb.split(), golden, "-o", target)
    assert (done.returncode, "No space left" in done.stderr) == (2, True), done.stderr
    assert [path.read_text() for path in target.parent.iterdir()] == ["[]\n"]


@pytest.mark.parametrize("verb", ["report", "plot iops", "plot all"])
def test_a_report_folder_that_is_a_file_is_refused(
    golden: Path, volbench: Volbench, verb: str
) -> None:
    """A folder that cannot be written to: no traceback, and where else to write."""
    (golden / "report").write_text("a file")
    done = volbench(*verb.split(), golden)
    assert done.returncode == 2
    assert "--output" in done.stderr


EVIL = "=1+1"
RESULT = Path(__file__).parents[1] / "cases/fio-3.33/randrw-jsonplus/stdout"


@pytest.fixture
def campaign(tmp_path: Path, volbench: Volbench) -> Path:
    """Return a campaign whose host and label are formulas."""
    (tmp_path / "stdout").write_bytes(RESULT.read_bytes())
    done = volbench(
        "import", tmp_path / "stdout", "--label", f"type={EVIL}", "--host", "@host", "-o", "in"
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "in"


def test_a_report_opens_where_there_is_a_desktop(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser gets the page; without one the command to open it is printed."""
    browser, page = campaign / "browser", campaign / "report" / "index.html"
    browser.write_text(f"#!/bin/sh\necho $1 > {campaign}/seen\n")
    browser.chmod(0o755)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "")
    assert f"xdg-open {page}" in call("report", campaign, "--open").stderr
    monkeypatch.setenv("BROWSER", str(browser))
    assert "xdg-open" not in call("report", campaign, "--open").stderr
    assert (campaign / "seen").read_text() == f"{page.as_uri()}\n"


@pytest.mark.parametrize(
    "verb",
    [
        ("export",),
        ("export", "--frame", "series"),
        ("show", "--format", "csv", "--columns", "host,label_type"),
    ],
    ids=" ".join,
)
def test_no_cell_starts_a_formula(campaign: Path, volbench: Volbench, verb: Sequence[str]) -> None:
    """An apostrophe goes in front; with --raw the text is as it is. Numbers are untouched."""
    plain = _cells(volbench(*verb, campaign).stdout)
    raw = _cells(volbench(*verb, campaign, "--raw").stdout)
    starts = ("=", "+", "-", "@", "\t", "\r")
    assert [cell for cell in plain if cell.startswith(starts) and not _is_number(cell)] == []
    assert [cell.removeprefix("'") for cell in plain] == raw


def _cells(text: str) -> list[str]:
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert cells
    return cells


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
