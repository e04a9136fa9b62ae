"""Damaged files of a run: refused with the name of the file, while the campaign stays readable."""

import json
import math
import re
from pathlib import Path

import pytest

from tests.damage import DEEP, WRONG_JSON, damaged
from tests.golden import GOLDEN, copy_of
from volbench.api.one_campaign import campaign_data
from volbench.errors import VolbenchError
from volbench.store.log_files import open_log

FILES = [
    *("campaign.json", "journal.jsonl", "consent.json"),
    *(f"runs/001-mix-r1/{name}" for name in ("fio.json", "status.json", "facts.json", "job.fio")),
    *(f"runs/001-mix-r1/{name}.zst" for name in ("device.log", "series_iops.1.log")),
]
OPTIONAL = {"NaN", "Infinity", "-Infinity", "1e400"}
"""Fio prints them where it divides by 0: they mean "not reported"."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a recorded campaign that may be changed."""
    return copy_of(GOLDEN[-1], tmp_path / "c")


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_read_or_refused_without_other_errors(root: Path, name: str) -> None:
    """Flipped, cut, deep, wrong types, out of bounds: an error of volbench, or finite numbers."""
    path = root / name
    content = path.read_bytes()
    if path.suffix == ".zst":
        with open_log(path) as stream:
            content = stream.read()
        path.unlink()
        path = path.with_suffix("")
    messages = []
    for what, bad in damaged(content, seed=12, variants=1):
        path.write_bytes(bad)
        try:
            rows = campaign_data(root).rows("summary")
        except VolbenchError as error:
            messages.append((what, error.message))
            continue
        numbers = [n for row in rows for n in row.values() if isinstance(n, int | float)]
        assert all(math.isfinite(n) for n in numbers), what
        assert json.dumps(rows, allow_nan=False, ensure_ascii=False).encode(), what
    assert [what for what, message in messages if path.name not in message] == []


@pytest.mark.parametrize("wrong", sorted(set(WRONG_JSON) - OPTIONAL))
@pytest.mark.parametrize("key", ["total_ios", "runtime", "iops", "mean"])
def test_an_invalid_number_does_not_affect_other_runs(root: Path, key: str, wrong: str) -> None:
    """The message has the file and the key; the other runs have their numbers."""
    path = root / "runs/001-mix-r1/fio.json"
    path.write_text(
        re.sub(rf'("{key}" : )[\d.]+', lambda found: found[1] + wrong, path.read_text())
    )
    rows = campaign_data(root).rows("summary")
    assert rows[0]["status"] == "damaged"
    assert "fio.json" in str(rows[0]["damage"])
    assert key in str(rows[0]["damage"]) or "JSON" in str(rows[0]["damage"])
    assert [row["status"] for row in rows[1:]] == ["finished"]


@pytest.mark.parametrize("value", ["nan", "-inf", "1e400"])
def test_values_that_fio_divided_by_zero_are_missing(root: Path, value: str) -> None:
    """Fio prints nan and inf in optional places: n/a, never a number."""
    path = root / "runs/002-write-r1/fio.json"
    path.write_text(re.sub(r'"iops" : [\d.]+', f'"iops" : {value}', path.read_text()))
    row = campaign_data(root).rows("summary")[2]
    assert row["status"] == "finished"
    assert row["iops"] is None


@pytest.mark.parametrize("name", ["status.json", "facts.json", "fio.json"])
@pytest.mark.parametrize("bad", [DEEP, b'{"a": ' * 100_000, b'{"role": "\\ud800"}', b"", b"\0" * 9])
def test_deeply_nested_json_is_reported_as_damage(root: Path, name: str, bad: bytes) -> None:
    """200,000 brackets, lone surrogates and NUL bytes end no reader."""
    (root / "runs/001-mix-r1" / name).write_bytes(bad)
    assert name in str(campaign_data(root).rows("summary")[0]["damage"])


@pytest.mark.parametrize(
    "line",
    [
        DEEP,
        b'{"kind": "run", "run": "001-mix-r1", "state": "dreaming"}',
        b'{"kind": "run", "run": "001-mix-r1", "state": "failed", "reason": "\\ud800"}',
        b'{"kind": "pin", "host": "local", "target": "x", "pin": {"major": NaN}}',
        b'{"kind": "pin", "host": "local", "target": "x", "pin": {"major": -1}}',
    ],
    ids=lambda line: line[:60].decode(),
)
def test_a_line_of_the_journal_is_refused_by_its_number(root: Path, line: bytes) -> None:
    """Unknown states, surrogates and wrong numbers are no entries."""
    path = root / "journal.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())
    with pytest.raises(VolbenchError, match=r"journal\.jsonl:1: not a journal entry"):
        campaign_data(root)
