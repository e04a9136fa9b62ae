"""Python interface to comparisons and trends: from folders of campaigns to verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison import compare as compare_sides
from volbench.analyse.compare.comparison_groups import ARM
from volbench.analyse.compare.repeat_statistics import CONFIDENCE
from volbench.analyse.compare.workload_trends import (
    TOLERANCE,
    TrendQuestion,
    Trends,
    find_trends,
    record_of,
)
from volbench.analyse.frames.row_filter import select
from volbench.analyse.frames.run_options import given_order
from volbench.api.many_campaigns import Dataset, facts_by_campaign, open_campaigns
from volbench.errors import ComparisonError, InputError
from volbench.extension import extensions, load
from volbench.model.frames.column_names import listed_names

if TYPE_CHECKING:
    import pandas as pd

    from volbench.api.notebook import Verdicts

_Result = TypeVar("_Result", Comparison, Trends)
_SIDES = (ARM, "volume")  # Columns that are compared in a single folder, unless one is named


def compare(  # noqa: PLR0913 - the keywords are the options of `volbench compare`, one by one
    *paths: str | os.PathLike[str] | Dataset,
    metric: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    between: str = "",
    base: str = "",
    where: str = "",
    tolerance: float | None = None,
    confidence: float = CONFIDENCE,
    allow_different: str | Sequence[str] = (),
    keep_invalid: bool = False,
) -> Verdicts:
    """Compare campaigns as ``volbench compare`` does.

    Args:
        paths: campaign folders, folders of campaigns, or open campaigns; the first is the base. Of
            a single one, its arms or volumes are compared.
        metric: one or several, such as ``"iops,p99"`` or ``["iops", "p99"]``; none for those two.
        by: columns that are kept apart, beside the job.
        between: a column whose values are compared, within all folders.
        base: its value that the others are compared with; empty for the first.
        where: keep only runs for which this holds.
        tolerance: an acceptable relative change, such as 0.05; None to report any.
        confidence: family-wise, of all verdicts.
        allow_different: relevant facts that may differ, such as ``kernel``.
        keep_invalid: keep runs that a rule marked invalid.

    Returns:
        ``frame`` has the columns of ``volbench compare --format csv``, a row for each verdict.

    Raises:
        InputError: a name, a share or a path is wrong, or there is nothing to compare with.
        ComparisonError: relevant facts differ, or there is nothing to compare.
    """
    from volbench.api.notebook import Verdicts  # noqa: PLC0415 - the command line needs none

    question = Question.of(
        metric=metric,
        by=by,
        between=between,
        base=base,
        confidence=confidence,
        tolerance=tolerance,
        allow_different=allow_different,
        keep_invalid=keep_invalid,
    )
    sides = [path if isinstance(path, Dataset) else os.fspath(path) for path in paths]
    return Verdicts(compare_folders(sides, question, where=where))


def compare_folders(
    folders: Sequence[str | Path | Dataset], question: Question, *, where: str = ""
) -> Comparison:
    """Read folders and compare them; the first is the base.

    Args:
        folders: campaigns, or folders of campaigns; also addresses in object storage, or opened.
        question: what is compared, and how.
        where: keep only runs for which this holds.
    """
    given = [each if isinstance(each, Dataset) else open_campaigns(each) for each in folders]
    sides = [_side(each) for each in folders]
    opened = dict(zip(_side_names(sides), given, strict=True))
    facts = {name: select(dataset.facts(), where) for name, dataset in opened.items()}
    names = (*_SIDES, *{"host", "import_folder"}.difference(_SIDES))
    every = ((name, rows[name]) for name in names for rows in facts.values() if name in rows)
    varying = [name for name, values in every if len(values.dropna().unique()) > 1]
    if len(folders) == 1 and not question.between:
        question = replace(question, between=next((n for n in varying if n in _SIDES), ""))
    if question.between in {ARM, "host"}:
        plans = (data.campaign for dataset in opened.values() for data in dataset.names.values())
        question = replace(question, order=tuple(chain(*map(given_order, plans))))
    if folders and not any(len(rows) for rows in facts.values()):
        raise ComparisonError(
            "there is nothing to compare: no run has a result",
            hint="volbench status says how far a campaign is, volbench resume continues it",
        )
    if not folders or (len(folders) < 2 and not question.between):
        raise InputError(
            "there is nothing to compare with: all results are of one volume",
            hint=f"name a second folder, or the column to compare: --between"
            f" {next(iter(varying), 'COLUMN')}",
        )
    if question.base and not question.between:
        raise InputError(
            "--base names a value of --between",
            hint="without --between, the base is the first folder",
        )
    findings = {name: dataset.frame("findings") for name, dataset in opened.items()}
    result = compare_sides(
        facts, findings, question, bins=lambda name: opened[name].frame("histogram")
    )
    return _explained(result, sides, question)


def trend(
    *paths: str | os.PathLike[str],
    metric: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    where: str = "",
    reference: int | None = None,
    tolerance: float = TOLERANCE,
    allow_different: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Follow each workload over campaigns as ``volbench trend`` does.

    Args:
        paths: campaign folders, or folders of campaigns; they are put in the order of their starts.
        metric: as for `compare`.
        by: columns that are kept apart, beside the workload.
        where: keep only runs for which this holds.
        reference: number of campaigns of the reference period; None to choose.
        tolerance: an acceptable relative change for the worse.
        allow_different: options of the jobs that may differ, such as ``rate_iops``.

    Returns:
        A row for each workload and metric, with the columns of ``volbench trend --format csv``:
        ``state`` is its verdict. ``attrs["remarks"]`` has the caveats, a sentence each.

    Raises:
        InputError: a name or a path is wrong.
        ComparisonError: an option of the jobs changed, or nothing is left to look at.
    """
    import pandas as pd  # noqa: PLC0415 - the command line needs none

    question = TrendQuestion(
        metrics=listed_names(metric),
        by=listed_names(by),
        reference=reference,
        tolerance=tolerance,
        allowed=listed_names(allow_different),
    )
    trends = dataset_trends(open_campaigns(*paths, where=where), question)
    frame = pd.DataFrame([record_of(row) for row in trends.rows]).drop(columns="changes")
    frame.attrs["remarks"] = list(trends.remarks)
    return frame


def dataset_trends(dataset: Dataset, question: TrendQuestion) -> Trends:
    """Follow each workload over campaigns that were opened."""
    findings, sums = dataset.frame("findings"), dataset.frame("aggregate")
    rows, facts = dataset.summary(options=True), facts_by_campaign(dataset)
    trends = find_trends(rows, findings, question, facts=facts, sums=sums)
    return _explained(trends, dataset, question)


def _explained(result: _Result, *asked: object) -> _Result:
    """Return a result with what extensions know of it, such as that a host was slower."""
    for reference in (extension.explain for extension in extensions() if extension.explain):
        result = load(reference)(result, *asked)
    return result


def _side(given: str | Path | Dataset) -> str | Path:
    """Return the folder of a side, or the names of its campaigns where they are several."""
    if not isinstance(given, Dataset):
        return given
    return given.path if len(given.names) == 1 else ", ".join(given.names)


def _side_names(folders: Sequence[str | Path]) -> list[str]:
    whole = [str(Path(folder).resolve()) for folder in folders]
    twice = next((path for index, path in enumerate(whole) if path in whole[:index]), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice", hint="name different folders")
    short = [path.rstrip("/").rpartition("/")[2] for path in whole]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
