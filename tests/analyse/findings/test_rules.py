"""The rules as a whole: their texts, their ids, their order, and what the frame holds of them."""

import ast
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

from tests.analyse.findings.conftest import Section, a_run, a_view, summary_row
from volbench.analyse import findings
from volbench.analyse.bottleneck.campaign_context import Context
from volbench.analyse.findings import RULES, Rule, find, finding_rows
from volbench.model.frames.columns import FINDINGS
from volbench.model.results.finding import Severity

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_an_explanation(rule: Rule) -> None:
    """Its texts are whole sentences, and its id can be typed."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
    for text in (rule.looks_at, rule.why, rule.advice):
        assert text[0].isupper() or text[0] in "fi", text
        assert text.endswith((".", ".)"))
        assert "  " not in text
    assert not rule.title.endswith(".")


def test_ids_are_unique() -> None:
    """An id names one rule, and no rule of a module is left out of the list."""
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    written = {
        rule.id
        for found in pkgutil.iter_modules(findings.__path__, f"{findings.__name__}.")
        for rule in vars(importlib.import_module(found.name)).values()
        if isinstance(rule, Rule)
    }
    assert written == {rule.id for rule in RULES}


def rules_requested(test_folder: Path) -> set[str]:
    """Return the ids that tests ask for by ``rule="..."``."""
    found: set[str] = set()
    for path in test_folder.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.keyword) or node.arg != "rule":
                continue
            if isinstance(node.value, ast.Constant):
                found.add(str(node.value.value))
    return found


def test_every_rule_is_tested_here() -> None:
    """A new rule without a test in this folder is noticed."""
    assert rules_requested(FOLDER) == {rule.id for rule in RULES}


def test_the_most_severe_finding_of_a_run_comes_first() -> None:
    """Runs stay in the order of the plan."""
    late = a_run({"refill_buffers": None}, name="late")
    early = a_run({"refill_buffers": None}, name="early")
    views = a_view(late), a_view(early, summary=[summary_row(early, error=5)])
    order = [(entry.run, entry.severity) for entry in find(Context(views))]
    assert order == [
        (late.id, Severity.NOTE),
        (early.id, Severity.INVALID),
        (early.id, Severity.NOTE),
    ]


def test_the_frame_has_a_row_per_finding() -> None:
    """A row has the columns of the contract, and its evidence is JSON without NaN."""
    run = a_run({"direct": None}, sections=(Section(name="x"), Section(name="y")))
    view = a_view(run, summary=[summary_row(run, group="x", io_bytes=None)], device=[])
    rows = finding_rows(Context((view,)))
    assert rows
    assert all(set(row) <= {column.name for column in FINDINGS} for row in rows)
    assert all("NaN" not in str(row["evidence"]) for row in rows)
    by_rule = {row["rule"]: row for row in rows}
    assert by_rule["page-cache"]["group"] is None
    assert json.loads(str(by_rule["page-cache"]["evidence"]))["tool_bw_bytes_per_s"] > 0
