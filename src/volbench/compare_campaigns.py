"""Python interface to comparisons: folders of campaigns, and a row for each verdict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison import compare as compare_sides
from volbench.analyse.compare.comparison_result import row_of
from volbench.analyse.compare.repeat_statistics import CONFIDENCE
from volbench.analyse.frames.row_filter import select
from volbench.dataset import open_campaigns
from volbench.errors import InputError


def compare(  # noqa: PLR0913 - the keywords are the options of `volbench compare`, one by one
    *paths: str | os.PathLike[str],
    metric: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    between: str = "",
    base: str = "",
    where: str = "",
    tolerance: float | None = None,
    confidence: float = CONFIDENCE,
    allow_different: str | Sequence[str] = (),
    keep_invalid: bool = False,
) -> pd.DataFrame:
    """Compare campaigns as ``volbench compare`` does, and return a row for each verdict.

    Args:
        paths: campaign folders, or folders of campaigns; the first is the base.
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
        The columns of ``volbench compare --format csv``, in base SI units: ``ratio`` is candidate
        over base, and its ends at ``confidence`` are NaN where there are too few repeats;
        ``words`` is the verdict. ``attrs["remarks"]`` has the caveats, a sentence each.

    Raises:
        InputError: a name, a share or a path is wrong, or there is nothing to compare with.
        ComparisonError: relevant facts differ, or nothing is left to compare.
    """
    question = Question(
        metrics=_listed(metric),
        by=_listed(by),
        between=between,
        base=base,
        confidence=_share(confidence, "confidence", least=0.5),
        tolerance=None if tolerance is None else _share(tolerance, "tolerance", least=0),
        allowed=_listed(allow_different),
        keep_invalid=keep_invalid,
    )
    found = compare_folders([Path(path) for path in paths], question, where=where)
    frame = pd.DataFrame([row_of(verdict) for verdict in found.rows])
    numbers = [name for name in _NUMBERS if name in frame]
    frame[numbers] = frame[numbers].astype("float64")
    frame.attrs["remarks"] = list(found.remarks)
    return frame


_NUMBERS = (
    *("ratio", "ratio_low", "ratio_high", "confidence"),
    *("simultaneous_low", "simultaneous_high", "simultaneous_confidence"),
    *("p_value", "detectable_percent"),
)
"""Columns that are None where nothing can be said: NaN in a frame."""


def compare_folders(folders: Sequence[Path], question: Question, *, where: str = "") -> Comparison:
    """Read folders and compare them; the first is the base.

    Args:
        folders: campaigns, or folders of campaigns.
        question: what is compared, and how.
        where: keep only runs for which this holds.

    Raises:
        InputError: there is one folder and nothing to compare within it, or a folder twice.
        ComparisonError: they cannot be compared.
    """
    if not folders or (len(folders) < 2 and not question.between):
        raise InputError(
            "there is nothing to compare with",
            hint="name a second folder, or the column to compare with --between COLUMN",
        )
    if question.base and not question.between:
        raise InputError(
            "--base names a value of --between", hint="without --between the first folder is it"
        )
    opened = dict(zip(_side_names(folders), map(open_campaigns, folders), strict=True))
    return compare_sides(
        {name: select(dataset.facts(), where) for name, dataset in opened.items()},
        {name: dataset.frame("findings") for name, dataset in opened.items()},
        question,
        bins=lambda name: opened[name].frame("histogram"),
    )


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    parts = names.split(",") if isinstance(names, str) else names
    return tuple(part.strip() for part in parts if part.strip())


def _share(value: float, name: str, *, least: float) -> float:
    """Return a share below 1: 5 is easily written for 5 %."""
    if not least <= value < 1:
        raise InputError(
            f"{name} {value:g} must be a share from {least:g} to below 1", hint="write 5 % as 0.05"
        )
    return value


def _side_names(folders: Sequence[Path]) -> list[str]:
    """Return the shortest unique names of folders."""
    resolved = [folder.resolve() for folder in folders]
    twice = next((path for place, path in enumerate(resolved) if path in resolved[:place]), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice", hint="name different folders")
    short = [folder.name for folder in resolved]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]
