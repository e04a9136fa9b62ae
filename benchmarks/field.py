"""Precision and recall of each rule over published results whose truth is known.

The results are passed as folders; labels say what is true of them (benchmarks/TRUTH.md):

    .venv/bin/python benchmarks/field.py --labels tests/cases/field/labels.yaml FOLDER...
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from volbench.analyse.findings import RULES
from volbench.extensions.importer.import_campaign import import_results

LABELS = Path(__file__).parents[1] / "tests" / "cases" / "field" / "labels.yaml"
_KEYS = {"files", "why", "expect", "right", "wrong"}


@dataclass(frozen=True)
class Label:
    """What is true of some results."""

    files: tuple[str, ...]  # patterns of their paths, from any folder on
    why: str  # what was seen in the data
    expect: frozenset[str]  # rules that have to find something
    right: frozenset[str]  # rules that are right if they find something
    wrong: frozenset[str]  # rules that are wrong if they do; ``others`` for all the rest

    def holds_for(self, source: str) -> bool:
        """Return whether a path is one of its files."""
        return any(fnmatch.fnmatch(f"/{source}", f"*/{pattern}") for pattern in self.files)


def read_labels(path: Path) -> list[Label]:
    """Return the labels of a file.

    Raises:
        SystemExit: a key or a rule is not known.
    """
    known = {rule.id for rule in RULES} | {"others"}
    labels = []
    for place, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), start=1):
        rules = {name: frozenset(entry.get(name, ())) for name in ("expect", "right", "wrong")}
        unknown = [*(set(entry) - _KEYS), *(frozenset().union(*rules.values()) - known)]
        if unknown or "files" not in entry:
            sys.exit(f"{path}: entry {place}: {', '.join(unknown) or 'files is missing'}")
        files = entry["files"]
        patterns = (files,) if isinstance(files, str) else tuple(files)
        labels.append(Label(patterns, entry.get("why", ""), **rules))
    return labels


@dataclass(frozen=True)
class Judged:
    """One finding, or one that is missing."""

    rule: str
    source: str
    outcome: str  # true, false, missed or unlabelled
    message: str


def judge(folder: Path, labels: Sequence[Label]) -> Iterator[Judged]:
    """Import the results of a folder and judge the findings about each; notes claim little."""
    with tempfile.TemporaryDirectory() as place:
        data = import_results(folder, output=Path(place) / "campaign", on_note=lambda _: None)
        frame = data.frame("findings")
        sources = {
            run.id: run.imported.files[0].source
            for run in data.campaign.runs
            if run.imported is not None
        }
    for run, source in sources.items():
        own = [label for label in labels if label.holds_for(source)]
        rows = frame[frame["run"] == run]
        for rule, part in rows.groupby("rule", sort=False):
            is_note = bool((part["severity"] == "note").all())
            yield Judged(str(rule), source, _outcome(str(rule), own, is_note), part.iloc[0].message)
        found = set(rows["rule"])
        for rule in sorted(frozenset().union(*(label.expect for label in own)) - found):
            yield Judged(rule, source, "missed", "")


def _outcome(rule: str, labels: Sequence[Label], is_note: bool) -> str:  # noqa: FBT001
    """Return whether a finding is true; the first label that says something decides."""
    for label in labels:
        if rule in label.expect | label.right:
            return "true"
        if rule in label.wrong or ("others" in label.wrong and not is_note):
            return "false"
    return "unlabelled"


def main() -> None:
    """Print the table, and with ``--list`` each finding that is false or missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--list", action="store_true", help="list what is false, missed or open")
    arguments = parser.parse_args()
    labels = read_labels(arguments.labels)
    judged = [found for folder in arguments.folders for found in judge(folder, labels)]
    counts = Counter((found.rule, found.outcome) for found in judged)
    print("| rule | true | false | missed | unlabelled | precision | recall |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for rule in sorted({found.rule for found in judged}):
        right, wrong, missed, open_ = (
            counts[rule, outcome] for outcome in ("true", "false", "missed", "unlabelled")
        )
        shares = [
            f"{100 * right / whole:.0f} %" if whole else ""
            for whole in (right + wrong, right + missed)
        ]
        print(f"| {rule} | {right} | {wrong} | {missed} | {open_} | {shares[0]} | {shares[1]} |")
    if arguments.list:
        for found in judged:
            if found.outcome != "true":
                print(f"{found.outcome}: {found.rule}: {found.source}: {found.message}")


if __name__ == "__main__":
    main()
