"""Results of fio that verbs read where they are."""

import os
import time
from pathlib import Path

import pytest

from tests.command_line import Volbench
from tests.extensions.importer.sources import JSON, put
from volbench.api.many_campaigns import open_campaign
from volbench.errors import ArchiveError, InputError
from volbench.extensions.importer import cached_import
from volbench.extensions.importer.import_campaign import import_results
from volbench.store.layout import results_cache

DAY_S = 86_400


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    put(tmp_path / "results" / "run.json", JSON)
    return tmp_path / "results"


def entries() -> list[Path]:
    """Return the campaigns in the cache."""
    return sorted(results_cache().glob("*/campaign"))


def test_results_are_imported_once(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy is used while the files are unchanged, also of another time or place."""
    rates = open_campaign(results).summary()["iops"].tolist()
    assert "volbench import" in caplog.text
    assert str(results) in caplog.text
    (made,) = entries()
    first = made.stat().st_mtime_ns
    os.utime(results / "run.json", (0, 0))
    elsewhere = results.parent / "elsewhere" / "results"
    put(elsewhere / "run.json", JSON)
    for path in (results, elsewhere):
        assert open_campaign(path).summary()["iops"].tolist() == rates
    assert entries() == [made]
    assert made.stat().st_mtime_ns == first


def test_changed_results_are_imported_anew(results: Path) -> None:
    """A file that changes, comes or goes makes another campaign."""
    for count, change in enumerate(("", "\n", None), start=1):
        if change is None:
            put(results / "more.txt", "no result")
        elif change:
            put(results / "run.json", JSON + change)
        assert len(open_campaign(results).runs) == 1
        assert len(entries()) == count


def test_malformed_files_are_named_each_time(
    results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is missing from the numbers is said for a copy as well."""
    put(results / "cut.json", JSON[:2000])
    for _ in range(2):
        caplog.clear()
        open_campaign(results)
        assert "malformed files: 1" in caplog.text


def test_copies_are_dropped_by_age(results: Path) -> None:
    """A copy that nobody read for a month is removed by the next import; a used one stays."""
    open_campaign(results)
    (old,) = entries()
    long_ago_s = time.time() - 31 * DAY_S
    os.utime(old.parent, (long_ago_s, long_ago_s))
    open_campaign(results)
    put(results / "run.json", JSON + "\n")
    open_campaign(results)
    assert old in entries()
    os.utime(old.parent, (long_ago_s, long_ago_s))
    put(results / "run.json", JSON + "\n\n")
    open_campaign(results)
    assert old not in entries()


def test_a_folder_of_anything_is_not_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder would be read for minutes."""
    monkeypatch.setattr(cached_import, "_MAX_FILES", 1)
    put(results / "more.txt", "")
    with pytest.raises(InputError, match="more than 1 files"):
        open_campaign(results)


def test_a_cache_that_cannot_be_written_has_a_hint(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results can be imported into another folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    with pytest.raises(ArchiveError) as caught:
        open_campaign(results)
    assert "XDG_CACHE_HOME" in caught.value.hint


def test_campaigns_in_a_folder_come_first(results: Path, tmp_path: Path) -> None:
    """A folder with campaigns is all of them, whatever results lie beside them."""
    for name in ("a", "b"):
        import_results(results, output=tmp_path / "both" / name)
    put(tmp_path / "both" / "run.json", JSON)
    assert [*open_campaign(tmp_path / "both").names] == ["a", "b"]


def test_verbs_read_files_and_standard_input(
    volbench: Volbench, results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One file is shown, two are compared, a pipe is read, and the report is a file here."""
    put(tmp_path / "old.json", JSON)
    put(tmp_path / "new.json", JSON)
    shown = volbench("show", "results/run.json")
    assert shown.returncode == 0, shown.stderr
    assert "volbench import results/run.json -o NAME" in caplog.text
    with (results / "run.json").open() as stdin:
        piped = volbench("show", "-", stdin=stdin)
    assert piped.stdout == shown.stdout
    caplog.clear()
    compared = volbench("compare", "old.json", "new.json")
    assert caplog.text.count("1 run of results from fio") == 2
    assert compared.returncode == 0, compared.stderr
    assert "one run per side" in compared.stdout
    assert volbench("report", "results").returncode == 0
    assert "<html" in (tmp_path / "results-report.html").read_text()
    for arguments in (("plot", "results"), ("check", "results", "--files")):
        done = volbench(*arguments)
        assert done.returncode == 0, done.stderr
