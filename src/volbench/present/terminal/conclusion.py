"""Conclusion of a measurement in sentences: the answer, its reservations, and its warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from volbench.analyse.frames.design import Design, design_of
from volbench.errors import ComparisonError, quoted
from volbench.model.results.finding import Severity
from volbench.model.results.steadiness import State
from volbench.present.answer import Results, answer_of
from volbench.present.formatting import Row, printable, text
from volbench.present.tables.expectations_table import expectation_words
from volbench.units import counted_noun

if TYPE_CHECKING:
    import pandas as pd

    from volbench.analyse.compare.expected_bounds import Verdict

_GRAVE = frozenset(
    {"cold-blocks", "never-written", "page-cache"}
)  # Rules that are said before others
_NOT_JUDGED = "not judged"  # So short that the run has no verdict at all


class Frames(Results, Protocol):
    """A campaign whose results can be read as rows and as frames."""

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name."""

    def facts(self) -> pd.DataFrame:
        """Return the summary with what is known of hosts and volumes."""


def conclusion(
    dataset: Frames, *, folder: Path, expected: Sequence[Verdict] = (), has_answer: bool = True
) -> list[str]:
    """Return the conclusion, a fact to a line.

    The answers come first, unless they are printed with a table, then the warnings.
    """
    rows = dataset.results()
    findings = dataset.rows("findings")
    design = design_of(rows)
    lines = [
        *([expectation_words(expected), *answer_of(dataset, rows)] if has_answer else []),
        *_comparison(dataset, design, folder),
        *_steadiness(dataset, rows),
        *closing(rows, findings, folder),
    ]
    return [line for line in lines if line]


def _steadiness(dataset: Results, rows: Sequence[Row]) -> Iterator[str]:
    runs = {row["run"] for row in rows if row.get("iops") or row.get("bw_bytes_per_s")}
    if not runs:
        return
    worst: dict[object, object] = {}
    for row in dataset.rows("verdicts"):
        if row["run"] in runs and worst.get(row["run"], State.STEADY) == State.STEADY:
            worst[row["run"]] = row["verdict"]
    states = Counter(str(state) for state in worst.values())
    steady = states.pop(State.STEADY, 0)
    states.update([_NOT_JUDGED] * (len(runs) - len(worst)))
    others = ", ".join(f"{count} {state}" for state, count in states.items())
    if set(states) <= {State.TOO_SHORT.value, _NOT_JUDGED} and not steady:
        yield "Too short to say whether it is steady: use a longer --runtime."
    else:
        yield f"Steady: {steady} of {counted_noun(len(runs), 'run')}{others and f' ({others})'}."


def closing(
    rows: Sequence[Row], findings: Sequence[Row], folder: Path, verdicts: Sequence[Row] = ()
) -> list[str]:
    """Return the worst warning, or what short or single runs cannot show, and what to do next."""
    runs = {row["run"] for row in rows}
    kinds: dict[tuple[bool, object], list[Row]] = {}  # by whether it is invalid, and the rule
    for finding in findings:
        if finding["run"] in runs and finding["severity"] != Severity.NOTE.value:
            key = finding["severity"] == Severity.INVALID.value, finding["rule"]
            kinds.setdefault(key, []).append(finding)
    if not kinds:
        is_short = bool(verdicts) and {row["verdict"] for row in verdicts} == {State.TOO_SHORT}
        unknown = ["whether a rate lasts (use a longer runtime)"] * is_short
        is_single = max(design_of(rows).repeats, default=2) == 1
        unknown += ["how much results vary (use --repeat 3)"] * is_single
        words = f" Not known from these runs: {' and '.join(unknown)}." if unknown else ""
        return [f"No warnings.{words}", f"Next: volbench report {quoted(folder)}"]
    (is_invalid, rule), first = max(
        kinds.items(), key=lambda each: (each[0][0], each[0][1] in _GRAVE, len(each[1]))
    )
    count = f"{len({finding['run'] for finding in first})} of {len(runs)} runs"
    sentence = text(first[0], "message").partition(". ")[0].removesuffix(".")
    others = sum(len({each["run"] for each in kind}) for kind in kinds.values())
    others -= len({each["run"] for each in first})
    more = f" And {counted_noun(others, 'more warning')}." if others else ""
    advice = f" What to do: {text(first[0], 'advice')}" if is_invalid else ""
    kind = "Invalid" if is_invalid else "Warning"
    words = f"{kind} ({count}, {rule}): {sentence}.{more}{advice}"
    return [words, f"Next: volbench check {quoted(folder)}"]


def _comparison(dataset: Frames, design: Design, folder: Path) -> Sequence[str]:
    """Return the command for intervals; of hosts, whether they differ, and what else of them."""
    if design.compared != "host":
        is_compared = design.compared in {"arm", "volume"}
        return [f"Intervals: volbench compare {quoted(folder)}"] if is_compared else []
    from volbench.analyse.compare.comparison import Question, compare, headlines  # noqa: PLC0415 - brings scipy

    facts = dataset.facts()
    base = str(design.by_column["host"].known[0])
    question = Question(between="host", base=base)
    findings = dataset.frame("findings")
    try:
        comparison = compare(
            {"": facts}, {"": findings}, question, bins=lambda _: dataset.frame("histogram")
        )
        return [*headlines(comparison), *map(printable, comparison.comparability.remarks)]
    except ComparisonError as error:
        return [printable(f"Not compared: {error.message}")]
