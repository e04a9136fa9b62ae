"""Several campaigns as one: folders enter, frames with the rows of all of them leave.

They are also compared with one another here: folders enter, a row for each verdict leaves.

campaigns = volbench.open_campaigns("results")
campaigns.summary().groupby("label_volume_type")["iops"].median()
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from volbench.analyse.compare.comparison import Comparison, Question
from volbench.analyse.compare.comparison import compare as compare_sides
from volbench.analyse.compare.comparison_result import row_of
from volbench.analyse.compare.repeat_statistics import CONFIDENCE
from volbench.analyse.frames.row_filter import select
from volbench.analyse.frames.run_facts import stack, with_facts
from volbench.analyse.price.steady_performance import with_steady
from volbench.api import CampaignData, RunNote, open_campaign
from volbench.errors import InputError
from volbench.model.frames.columns import DERIVED, FRAMES, LABEL_PREFIX
from volbench.store.layout import Layout
from volbench.store.sql_answers import plain_answer
from volbench.store.sql_query import View, run_query


@dataclass(frozen=True)
class Part:
    """The rows of a frame that one campaign has.

    Attributes:
        campaign: its name in the dataset.
        made: when the campaign was planned and with which seed; no two campaigns share it.
        frame: the rows; may be none.
    """

    campaign: str
    made: str
    frame: pd.DataFrame


class Dataset:
    """Campaigns opened for reading together.

    Frames have the columns of docs/reference/frames.md. Where there are several campaigns,
    ``campaign`` tells them apart although two may have the same name, and ``run`` has it before
    it (``aks/0001-test1``), so that ids stay unique.

    Attributes:
        names: name to campaign, in order.
        where: the condition for Runs; empty for all.
    """

    def __init__(self, campaigns: Sequence[CampaignData], *, where: str = "") -> None:
        self.names = dict(zip(_names(campaigns), campaigns, strict=True))
        self.where = where
        self._frames: dict[str, pd.DataFrame] = {}

    @property
    def runs(self) -> dict[str, RunNote]:
        """Every Run of every plan with its state, by its id in the frames."""
        several = len(self.names) > 1
        return {
            f"{own}/{run}" if several else run: note
            for own, data in self.names.items()
            for run, note in data.runs.items()
        }

    def summary(self) -> pd.DataFrame:
        """Return one row for each Run, fio job section and direction."""
        return self.frame("summary")

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name with the rows of all campaigns; a copy.

        Rows of Runs that the condition leaves out of the summary are left out of every frame.

        Raises:
            InputError: no frame has that name, or the condition can't be read.
        """
        if name not in self._frames:
            self._frames[name] = self._chosen(name)
        return self._frames[name].copy()

    def parts(self, name: str) -> Iterator[Part]:
        """Yield a frame campaign by campaign, to be kept apart from one another.

        Ids of Runs have the campaign's name before them even where there is only one campaign.

        Raises:
            InputError: as for `frame`.
        """
        whole = self.frame(name)
        if len(self.names) == 1 and "run" in whole:
            whole = _named(whole, campaign=next(iter(self.names)))
        own = dict(iter(whole.groupby("campaign", sort=False)))
        for campaign, data in self.names.items():
            rows = own.get(campaign, whole.head(0))
            made = f"{data.campaign.created_utc} seed {data.campaign.seed}"
            yield Part(campaign=campaign, made=made, frame=rows.reset_index(drop=True))

    def facts(self) -> pd.DataFrame:
        """Return the summary with what is known of each Run: options, host, volume, steady rates.

        Columns beyond the summary's are those of `volbench.model.frames.metadata`, and every option
        of fio that changes the I/O. A condition may name them.
        """
        parts = []
        for name, data in self.names.items():
            prefix = f"{name}/" if len(self.names) > 1 else ""
            summary = with_steady(data.frame("summary"), data.frame("verdicts"))
            parts.append(
                with_facts(
                    _named(summary, campaign=name) if prefix else summary,
                    data.context().views,
                    volbench_version=data.provenance.volbench_version,
                    prefix=prefix,
                )
            )
        return select(stack(parts), self.where)

    def view(self, name: str) -> View:
        """Return where SQL finds the rows of a frame: tables on disk, else what was judged."""
        files = {own: data.table_file(name) for own, data in self.names.items()}
        if self.where or name in DERIVED or None in files.values():
            table = pa.Table.from_pandas(self.frame(name), preserve_index=False)
            return View(tables=[table])
        paths = {str(file.absolute()): own for own, file in files.items() if file is not None}
        return View(named_files=paths) if len(paths) > 1 else View(files=list(paths))

    def sql(self, query: str) -> pd.DataFrame:
        """Answer a query over the frames, which are its tables.

        Args:
            query: such as ``select label_volume_type, median(iops) from summary group by all``.

        Raises:
            InputError: duckdb is missing, or the query is wrong or does more than to read.
        """
        return plain_answer(run_query(query, self.view))

    def _chosen(self, name: str) -> pd.DataFrame:
        whole = self._joined(name)
        if not self.where or name not in FRAMES:
            return whole
        if name == "summary":
            return select(whole, self.where)
        if "run" not in whole:
            return whole
        runs = self.frame("summary")["run"].drop_duplicates()
        return whole[whole["run"].isin(runs)].reset_index(drop=True)

    def _joined(self, name: str) -> pd.DataFrame:
        if len(self.names) == 1:
            return next(iter(self.names.values())).frame(name)
        parts = [_named(data.frame(name), campaign=own) for own, data in self.names.items()]
        filled = [part for part in parts if len(part)] or parts[:1]
        joined = pd.concat(filled, ignore_index=True)
        return joined[_in_order(parts, list(joined.columns))]


def open_campaigns(*paths: str | os.PathLike[str], where: str = "") -> Dataset:
    """Open campaign folders, and every campaign below folders that hold some.

    Args:
        paths: campaign folders, or folders with campaigns in them at any depth.
        where: keep only Runs for which this holds, such as ``bs==4k and volume_type~gp``.

    Raises:
        InputError: there is no campaign in one of them.
        ArchiveError: one is damaged, or written by a newer volbench.
    """
    found = [folder for path in paths for folder in _folders(Path(path))]
    return Dataset([open_campaign(folder) for folder in dict.fromkeys(found)], where=where)


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
        where: keep only Runs for which this holds.
        tolerance: a relative change that nobody minds, such as 0.05; None to tell any.
        confidence: of all verdicts together.
        allow_different: what may differ although it matters, such as ``kernel``.
        keep_invalid: take Runs that a rule called invalid.

    Returns:
        The columns of ``volbench compare --format csv``, in base SI units: ``ratio`` is candidate
        over base with its ends at ``confidence``, NaN where there are too few repeats; ``words``
        tells the verdict. ``attrs["remarks"]`` has what a reader must know, a sentence each.

    Raises:
        InputError: a name, a share or a path is wrong, or there is nothing to compare with.
        ComparisonError: what matters differs, or nothing is left to compare.
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
    frame = pd.DataFrame([row_of(one) for one in found.rows])
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


def compare_folders(folders: Sequence[Path], asked: Question, *, where: str = "") -> Comparison:
    """Read folders and compare them; the first is the base.

    Args:
        folders: campaigns, or folders of campaigns.
        asked: what is compared, and how.
        where: keep only Runs for which this holds.

    Raises:
        InputError: there is one folder and nothing to compare within it, or a folder twice.
        ComparisonError: they can't be compared.
    """
    if not folders or (len(folders) < 2 and not asked.between):
        raise InputError(
            "there is nothing to compare with",
            hint="name a second folder, or the column to compare with --between COLUMN",
        )
    if asked.base and not asked.between:
        raise InputError(
            "--base names a value of --between", hint="without --between the first folder is it"
        )
    sides, findings = {}, {}
    for name, folder in zip(_side_names(folders), folders, strict=True):
        dataset = open_campaigns(folder)
        sides[name] = select(dataset.facts(), where)
        findings[name] = dataset.frame("findings")
    return compare_sides(sides, findings, asked)


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    parts = names.split(",") if isinstance(names, str) else names
    return tuple(part.strip() for part in parts if part.strip())


def _share(value: float, name: str, *, least: float) -> float:
    """Return a share that is one: 5 is easily written for 5 %."""
    if not least <= value < 1:
        raise InputError(
            f"{name} {value:g} is no share from {least:g} to below 1", hint="write 5 % as 0.05"
        )
    return value


def _side_names(folders: Sequence[Path]) -> list[str]:
    """Return the shortest names of folders that tell them apart."""
    resolved = [folder.resolve() for folder in folders]
    twice = next((one for place, one in enumerate(resolved) if one in resolved[:place]), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice", hint="name different folders")
    short = [folder.name for folder in resolved]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def _folders(path: Path) -> list[Path]:
    """Return the campaigns at or below a path, in the order of their names."""
    if Layout(path).campaign.exists():
        return [path]
    found = []
    for folder, below, files in os.walk(path):
        if Layout(Path(folder)).campaign.name in files:
            found.append(Path(folder))
            below.clear()
        # A hidden one may be an import that was killed half-way.
        below[:] = sorted(name for name in below if not name.startswith("."))
    if not found:
        raise InputError(
            f"there is no campaign in {path}",
            hint="name a folder that volbench run or volbench import wrote",
            context={"path": str(path)},
        )
    return found


def _names(campaigns: Sequence[CampaignData]) -> list[str]:
    """Return a name for each campaign: its own, else its folder's, else numbered."""
    own = [data.campaign.name for data in campaigns]
    if len(set(own)) == len(own):
        return own
    folders = [data.path.resolve().name for data in campaigns]
    if len(set(folders)) == len(folders):
        return folders
    return [f"{name} ({place})" for place, name in enumerate(own, start=1)]


def _named(frame: pd.DataFrame, *, campaign: str) -> pd.DataFrame:
    frame["campaign"] = pd.Series(campaign, index=frame.index, dtype=frame["campaign"].dtype)
    if "run" in frame:
        frame["run"] = frame["campaign"] + "/" + frame["run"]
    return frame


def _in_order(parts: Sequence[pd.DataFrame], columns: list[str]) -> list[str]:
    """Return columns in the contract's order: labels, which differ by campaign, come last."""
    first = [name for name in parts[0].columns if not name.startswith(LABEL_PREFIX)]
    return [*first, *(name for name in columns if name not in first)]
