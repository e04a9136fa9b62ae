"""Notebooks of the documentation run on campaigns that were really measured."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import volbench
from tests.real import ROOT, measure

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "docs" / "notebooks" / "compare-volumes.ipynb"
SETTING, RATES_DIFFER = r"MAY_DIFFER = \"\"", r"MAY_DIFFER = \"rate_iops\""


@pytest.fixture(name="cells")
def _cells(tmp_path: Path) -> list[dict[str, Any]]:
    for name, iops in (("slow", 200), ("fast", 600)):
        measure(tmp_path / "results", name, f"rate_iops={iops}", "runtime=1s", "repeat=2")
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert SETTING in text
    (tmp_path / "it.ipynb").write_text(text.replace(SETTING, RATES_DIFFER), encoding="utf-8")
    kept = {"JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "MPLCONFIGDIR"}
    environment = os.environ | {name: str(tmp_path / name.lower()) for name in kept}
    program = Path(sys.executable).with_name("jupyter-execute")
    done = subprocess.run(
        [program, "--output", tmp_path / "done.ipynb", tmp_path / "it.ipynb"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads((tmp_path / "done.ipynb").read_text(encoding="utf-8"))["cells"])


def test_the_notebook_runs(cells: list[dict[str, Any]], tmp_path: Path) -> None:
    """Cells run in order, charts, findings and verdicts are shown, and numbers are right."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    reported = [output.get("data", {}) for output in outputs]
    assert sum("image/png" in entry for entry in reported) == 3
    pages = ["".join(entry["text/html"]) for entry in reported if "text/html" in entry]
    assert any("too-short" in page for page in pages)
    assert any("slow against fast, iops" in page for page in pages)
    assert not [entry for entry in outputs if entry.get("name") == "stderr"]
    texts = ["".join(entry.get("text/plain", "")) for entry in reported]
    answer = next(text for text in texts if "median" in text and " reads " in text)
    rows = [line.split() for line in answer.splitlines() if " reads " in line]
    by_volume = {row[1]: float(row[-2]) for row in rows}
    summary = volbench.open_campaigns(tmp_path / "results").summary()
    reads = summary[summary["direction"] == "read"].groupby("campaign")["iops"].median()
    assert by_volume == pytest.approx(reads.to_dict(), rel=1e-3)
    assert by_volume["fast"] > by_volume["slow"]


def test_the_notebook_is_kept_without_outputs() -> None:
    """What a machine put into it does not belong in the documentation."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell.get("outputs", []) == [] for cell in cells)
    assert len(cells) > 10


def test_the_notebook_runs_on_one_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has measured one volume so far reads the same cells, without a comparison."""
    measure(tmp_path / "results", "only", "runtime=1s")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # noqa: S102 - the project's own notebook
    assert names["BY"] == "campaign"
