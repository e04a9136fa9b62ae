"""Python interface to several campaigns at once: joined frames and comparisons.

campaigns = volbench.open_campaigns("results")
campaigns.summary().groupby("label_volume_type")["iops"].median()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volbench.api.one_campaign import CampaignData, campaign_data
from volbench.errors import InputError
from volbench.extension import extensions, load
from volbench.model.campaign.planned_run import AUDIT, Campaign, RunNote, RunState, unfinished
from volbench.model.frames.column_names import listed_names
from volbench.model.frames.columns import FRAMES, LABEL_PREFIX
from volbench.model.profile.profile_model import Phase
from volbench.present.formatting import printable
from volbench.store.atomic_files import write_output
from volbench.store.layout import Layout, walk
from volbench.store.worker_processes import NOBODY, Tell
from volbench.units import counted_noun, natural_order

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from volbench.analyse.compare.expected_bounds import Verdict as ExpectedBound
    from volbench.analyse.compare.promised_limits import Delivery
    from volbench.analyse.frames.design import Design
    from volbench.api.notebook import Chart, Findings
    from volbench.model.frames.expectation import Expectation
    from volbench.model.profile.profile_settings import Rounds
    from volbench.present.plots.kinds import Choice, Options, View


_MAX_NAMES = 3  # Campaigns that the text of a dataset names, so that it fits a line


class Dataset:
    """Campaigns opened for reading together.

    Frames have the columns of `volbench help frames`. Where there are several campaigns,
    ``campaign`` distinguishes them although two may have the same name, and ``run`` has it as a
    prefix (``aks/0001-test1``), so that ids stay unique.

    Attributes:
        names: name to campaign, in order.
        where: condition that runs must meet; empty for all.
    """

    def __init__(self, campaigns: Sequence[CampaignData], *, where: str = "") -> None:
        self.names = dict(zip(_campaign_names(campaigns), campaigns, strict=True))
        self.where = where
        self._frames: dict[str, pd.DataFrame] = {}

    @property
    def path(self) -> Path:
        """The folder of the campaign, if there is only one.

        Raises:
            InputError: there are several.
        """
        return self._only.path

    @property
    def campaign(self) -> Campaign:
        """The plan of the campaign, if there is only one.

        Raises:
            InputError: there are several.
        """
        return self._only.campaign

    @property
    def runs(self) -> dict[str, RunNote]:
        """Every run of every plan with its state, by its id in the frames."""
        return {
            f"{self._prefix(campaign)}{run}": note
            for campaign, data in self.names.items()
            for run, note in data.runs.items()
        }

    def summary(self, *, options: bool = False) -> pd.DataFrame:
        """Return one row for each run, fio job section and direction.

        Args:
            options: add a column for each option of fio that changes the I/O.
        """
        if not options:
            return self.frame("summary")
        from volbench.analyse.frames.run_facts import stack, with_options  # noqa: PLC0415 - brings pandas

        parts = [
            self._own(name, with_options(data.summary(), data.campaign))
            for name, data in self.names.items()
        ]
        return self._select(stack(parts))

    def series(self) -> pd.DataFrame:
        """Return one row for each run, section, direction and interval; finished runs only."""
        return self.frame("series")

    def __repr__(self) -> str:
        """Return the number of campaigns and of finished runs, and the condition."""
        finished = sum(note.state is RunState.FINISHED for note in self.runs.values())
        condition = f", where {self.where}" if self.where else ""
        runs = f"{finished} of {counted_noun(len(self.runs), 'run')} finished{condition}"
        names = ", ".join([*self.names][:_MAX_NAMES])
        if len(self.names) == 1:
            return printable(f"<Dataset {names}: {runs}, in {self.path}>")
        names += ", ..." if len(self.names) > _MAX_NAMES else ""
        return printable(f"<Dataset of {len(self.names)} campaigns ({names}): {runs}>")

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name with the rows of all campaigns; a copy.

        Rows of runs that the condition leaves out of the summary are left out of every frame.

        Raises:
            InputError: no frame has that name, the condition cannot be parsed, or no run meets it.
        """
        if len(self.names) == 1 and not self.where:
            return self._only.frame(name)
        if name not in self._frames:
            self._frames[name] = self._filtered(name, self._joined(name))
        return self._frames[name].copy()

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of `frame` as plain values, None for what is unknown.

        Without a condition they are read without pandas, which takes a fraction of the time.

        Raises:
            InputError: as for `frame`.
        """
        if self.where:
            from volbench.analyse.frames.job_frames import plain_rows  # noqa: PLC0415 - brings pandas

            return plain_rows(self.frame(name))
        parts = {campaign: data.rows(name) for campaign, data in self.names.items()}
        if len(parts) == 1:
            return [*next(iter(parts.values()))]
        columns = dict.fromkeys(name for rows in parts.values() for row in rows[:1] for name in row)
        return [
            {**columns, **row, "campaign": campaign}
            | ({"run": f"{campaign}/{row['run']}"} if "run" in row else {})
            for campaign, rows in parts.items()
            for row in rows
        ]

    def results(self) -> list[dict[str, object]]:
        """Return the rows of finished measured runs with the options of fio, as plain values.

        Syncs have latencies only and are left out. Without a condition it needs no pandas.
        """
        from volbench.analyse.frames.run_options import rows_with_options  # noqa: PLC0415 - for the rest

        rows: dict[str, list[dict[str, object]]] = {name: [] for name in self.names}
        for row in self.rows("summary"):
            if is_measured_row(row):
                rows[str(row["campaign"]) if len(rows) > 1 else next(iter(rows))].append(row)
        return rows_with_options(
            (
                data.campaign,
                {f"{self._prefix(name)}{run.id}": run for run in data.campaign.runs},
                rows[name],
                data.provenance.hosts,
            )
            for name, data in self.names.items()
        )

    @property
    def design(self) -> Design:
        """What varies over the results, what is constant, and what is repeated."""
        from volbench.analyse.frames.design import design_of  # noqa: PLC0415 - for the rest

        return design_of(self.results())

    @property
    def answer(self) -> list[str]:
        """What was measured and what follows, in two to four sentences."""
        from volbench.present.answer import answer_of  # noqa: PLC0415 - for the rest

        return answer_of(self)

    @property
    def verdict(self) -> list[str]:
        """What audits found, which is their answer; empty for other campaigns."""
        if AUDIT in {note.run.profile for note in self.runs.values() if note.run}:
            from volbench.present.tables.audit_table import audit_words  # noqa: PLC0415 - brings pandas

            with suppress(InputError):  # it was stopped before it measured a limit
                return [audit_words(deliveries_of(self, profile=AUDIT))]
        return []

    @property
    def sentences(self) -> list[str]:
        """Further sentences of the answer by extensions, such as who saturated a watched disk."""
        named = [reference for extension in extensions() for reference in extension.sentences]
        return [line for reference in named for line in load(reference)(self)]

    def facts(self) -> pd.DataFrame:
        """Return the summary with options, host, volume and steady rates of each run.

        Columns beyond the summary's are those of `volbench.model.frames.metadata`, and every option
        of fio that changes the I/O. A condition may name them.
        """
        from volbench.analyse.frames.run_facts import stack  # noqa: PLC0415 - brings pandas

        parts = [self._own(name, data.facts()) for name, data in self.names.items()]
        return self._select(stack(parts))

    @property
    def findings(self) -> Findings:
        """Data-quality warnings about the runs; ``findings.frame`` has a row for each."""
        from volbench.api.notebook import Findings  # noqa: PLC0415 - slow to import

        finished = sum(note.state is RunState.FINISHED for note in self.runs.values())
        return Findings(self.frame("findings"), runs=finished)

    def expect(self, *expectations: str | Expectation) -> list[ExpectedBound]:
        """Return whether the results meet expectations.

        Args:
            expectations: such as ``reads.p99 < 5ms``; none for those of the profiles.

        Raises:
            InputError: an expectation is wrong, or there are none.
        """
        from volbench.analyse.compare.expected_bounds import verdicts_of, verdicts_on_plans  # noqa: PLC0415 - brings pandas
        from volbench.analyse.compare.measurements import Measurements  # noqa: PLC0415 - same
        from volbench.model.frames.expectation import check_expectations, parse_expectation  # noqa: PLC0415 - only where asked

        given = [parse_expectation(e) if isinstance(e, str) else e for e in expectations]
        if not given and not states_expectations(self):
            raise InputError(
                "the profiles of these results state no expectations",
                hint="state one, such as --expect 'p99 < 5ms'",
            )
        frames = {name: self.frame(name) for name in ("verdicts", "aggregate", "findings")}
        summary = self.summary(options=True)
        absent = {
            name: [host.host for host in data.campaign.absent] for name, data in self.names.items()
        }
        named = {"summary": summary, **frames}
        waiting = [
            {"campaign": name, "profile": run.profile, "job": run.job, "run": run.id}
            for name, data in self.names.items()
            for run, note in unfinished(data.campaign, data.runs)
            if run.phase is Phase.MEASURED and not (note.state.has_ended or self.where)
        ]
        rounds = rounds_of(self)
        results = Measurements(named, in_rounds=rounds, absent=absent, unstarted=waiting)
        if not given:
            plans = {name: data.campaign.expect for name, data in self.names.items()}
            return verdicts_on_plans(plans, results)
        planned = [run for data in self.names.values() for run in data.campaign.runs]
        check_expectations(given, {run.job for run in planned if run.phase is Phase.MEASURED})
        return list(verdicts_of(given, results))

    def plot(  # noqa: PLR0913 - the keywords are the options of `volbench plot`, one by one
        self,
        what: str = "iops",
        *,
        x: str = "",
        by: str | Sequence[str] = (),
        panels: str | Sequence[str] = (),
        view: View = "",
        relative_to: str = "",
        where: str = "",
        title: str = "",
        theme: str = "light",
    ) -> Chart:
        """Return a chart, as ``volbench plot`` draws it; what is empty follows from the design.

        Args:
            what: responses such as ``"iops,p99"``, or a kind of chart such as ``"latency"``.
            x: factor along the x axis, such as ``"iodepth"``.
            by: factors whose values have colours.
            panels: factors whose values have panels.
            view: ``lines``, ``bars``, ``grid``, ``towers`` or ``table``.
            relative_to: value of `by` that the others are divided by.
            where: keep only runs for which this holds, as well as the dataset's own condition.
            title: over the chart; empty for its own.
            theme: ``light``, ``dark`` or ``print``.

        Raises:
            InputError: there is no such kind or column, or nothing for it.
        """
        from volbench.api.notebook import chart_of  # noqa: PLC0415 - slow to import
        from volbench.present.plots.kinds import Choice  # noqa: PLC0415 - only for charts

        choice = Choice(x, listed_names(by), listed_names(panels), view, relative_to)
        both = f"({self.where}) and ({where})" if self.where else where
        shown = Dataset([*self.names.values()], where=both) if where else self
        read, options = partial(plot_frame, shown), chart_options(shown, choice)
        return chart_of(what, read, options=options, title=title, theme=theme)

    def report(self, path: str | os.PathLike[str], *, title: str = "") -> Path:
        """Write the report, as ``volbench report`` does; return its path.

        Raises:
            VolbenchError: the file cannot be written.
        """
        report_page = load("volbench.api.report_content:report_page")  # which imports this module
        write_output(Path(path), report_page(self, title=title or None).encode(), kind=".html")
        return Path(path)

    def export(self, path: str | os.PathLike[str], frame: str = "summary") -> Path:
        """Write a frame in the format that the file is named for; all frames into a workbook.

        Args:
            path: ends with csv, json, parquet, xlsx, md or tex.
            frame: such as ``series``; a workbook has a sheet for each frame.

        Raises:
            InputError: there is no such frame or format.
            VolbenchError: the file cannot be written.
        """
        from volbench.present.export.frame_export import export_frame, export_frames, format_of_file  # noqa: PLC0415 - slow to import

        file = Path(path)
        kind = format_of_file(file)
        if kind == "xlsx":
            export_frames({name: self.frame(name) for name in FRAMES}, format=kind, into=file)
        else:
            export_frame(self.frame(frame), frame_name=frame, format=kind, into=file)
        return file

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method of an extension, such as ``price``."""
        for extension in extensions():
            if reference := extension.methods.get(name):
                return partial(load(reference), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_html_(self) -> str:
        """Return the answer and the results, as a notebook shows them."""
        from volbench.present.tables.html_table import html_table  # noqa: PLC0415 - for notebooks
        from volbench.present.tables.results_table import result_tables  # noqa: PLC0415 - same

        return "".join(map(html_table, result_tables(self, self.runs, is_brief=True)))

    @property
    def _only(self) -> CampaignData:
        if len(self.names) > 1:
            raise InputError(
                "several campaigns have neither one folder nor one plan",
                hint="names holds each by its name",
            )
        return next(iter(self.names.values()))

    def _own(self, campaign: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows of a campaign as they are named here."""
        return _with_campaign(frame, campaign=campaign) if len(self.names) > 1 else frame

    def _prefix(self, campaign: str) -> str:
        """Return what ids of runs of a campaign begin with."""
        return f"{campaign}/" if len(self.names) > 1 else ""

    def _filtered(self, name: str, whole: pd.DataFrame) -> pd.DataFrame:
        if not self.where or name not in FRAMES:
            return whole
        if name == "summary":  # a condition may name any option of fio
            return self.summary(options=True)[[*whole.columns]]
        if name == "aggregate":
            return self._summed(whole)
        if "run" not in whole:
            return whole
        runs = self.frame("summary")["run"].drop_duplicates()
        return whole[whole["run"].isin(runs)].reset_index(drop=True)

    def _summed(self, whole: pd.DataFrame) -> pd.DataFrame:
        """Return the sums over those clients that meet the condition.

        Steps that cannot be added up are left out, as the findings of the campaign say.
        """
        import pandas as pd  # noqa: PLC0415 - slow to import

        from volbench.analyse.frames.aggregate import aggregate_rows  # noqa: PLC0415 - the same
        from volbench.store.parquet_tables import frame_of, table_of  # noqa: PLC0415 - the same

        kept = set(self.frame("summary")["run"])
        parts = [whole.iloc[:0]]
        for name, data in self.names.items():
            prefix = self._prefix(name)
            runs = tuple(run for run in data.campaign.runs if prefix + run.id in kept)
            campaign = data.campaign.model_copy(update={"runs": runs})
            rows = aggregate_rows(campaign, data.frame, on_failure=lambda _run, _error: None)
            table = table_of("aggregate", rows, labels=campaign.label_names)
            parts.append(self._own(name, frame_of(table)))
        return pd.concat(parts, ignore_index=True)

    def _select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of runs that meet the condition."""
        from volbench.analyse.frames.row_filter import select  # noqa: PLC0415 - brings pandas

        selected = select(rows, self.where)
        if len(rows) and selected.empty:
            raise InputError(
                f"no run meets the condition {self.where!r}",
                hint="volbench export DIR shows the values of each column",
            )
        return selected

    def _joined(self, name: str) -> pd.DataFrame:
        import pyarrow as pa  # noqa: PLC0415 - slow to import

        from volbench.store.parquet_tables import frame_of  # noqa: PLC0415 - brings pyarrow

        if len(self.names) == 1:
            return next(iter(self.names.values())).frame(name)
        parts = [
            _table_with_campaign(data.table(name), campaign=campaign)
            for campaign, data in self.names.items()
        ]
        joined = pa.concat_tables(parts, promote_options="default")
        # Labels, which differ by campaign, come last.
        first = [name for name in parts[0].column_names if not name.startswith(LABEL_PREFIX)]
        return frame_of(joined.select([*dict.fromkeys((*first, *joined.column_names))]))


def open_campaign(path: str | os.PathLike[str]) -> Dataset:
    """Open a campaign folder, a folder with campaigns, or results of fio: see `open_campaigns`."""
    return open_campaigns(path)


def open_campaigns(*paths: str | os.PathLike[str], where: str = "") -> Dataset:
    """Open campaign folders, every campaign below folders that hold some, and results of fio.

    Args:
        paths: campaign folders, folders with campaigns in them at any depth, and files or folders
            with results of fio, which are imported into a cache; ``-`` is standard input.
        where: keep only runs for which this holds, such as ``bs==4k and volume_type~gp``.

    Raises:
        InputError: there is no campaign in one of them, or it is not a path.
        ArchiveError: one is damaged, or written by a newer volbench.
    """
    opened = {str(data.path): data for path in paths for data in _campaigns_below(path)}
    return Dataset([*opened.values()], where=where)


def plot_frame(dataset: Dataset, name: str) -> pd.DataFrame:
    """Return a frame by name as charts read it; the summary with every option of fio.

    Raises:
        InputError: as for `Dataset.frame`.
    """
    if name == "summary":
        return dataset.summary(options=True)
    if len(dataset.names) > 1 or dataset.where:
        return dataset.frame(name)
    return next(iter(dataset.names.values())).frame_once(name)


def chart_options(dataset: Dataset, choice: Choice) -> Options:
    """Return the options of a chart: what is chosen, and what trends explain changes by."""
    from volbench.present.plots.kinds import Options  # noqa: PLC0415 - only for charts

    every = partial(plot_frame, Dataset([*dataset.names.values()]), "summary")
    facts = partial(facts_by_campaign, dataset)
    return Options(choice, rounds_of(dataset), facts=facts, every=every if dataset.where else None)


def rounds_of(dataset: Dataset) -> dict[str, Rounds]:
    """Return profile to its tracking variables, of profiles that have rounds."""
    return {
        profile: rounds
        for data in dataset.names.values()
        for profile, rounds in data.campaign.rounds.items()
    }


def facts_by_campaign(dataset: Dataset) -> dict[str, dict[str, str]]:
    """Return campaign to what is known of its hosts, volumes and fio, by name of the fact."""
    from volbench.api.campaign_facts import facts_of  # noqa: PLC0415 - for trends only

    provenances = {name: data.provenance for name, data in dataset.names.items()}
    return facts_of(provenances, dataset.summary(options=True))


def deliveries_of(dataset: Dataset, *, profile: str = "") -> list[Delivery]:
    """Return what volumes deliver of their declared limits by a profile or all, the worst first.

    Raises:
        InputError: no run measures a limit.
    """
    from volbench.analyse.compare.promised_limits import deliveries  # noqa: PLC0415 - brings pandas

    plans = {name: note.run for name, note in dataset.runs.items() if note.run is not None}
    return deliveries(dataset.frame, plans, profile)


def states_expectations(dataset: Dataset) -> bool:
    """Return whether a profile expects something of its results."""
    return any(data.campaign.expect for data in dataset.names.values())


def store_tables(dataset: Dataset, *, processes: int = 1, tell: Tell = NOBODY) -> None:
    """Make every frame that is not up to date, and keep it in its campaign's folder.

    Args:
        processes: to read and judge runs in; more than one only where no other thread runs.
        tell: is called with the progress.
    """
    for data in dataset.names.values():
        data.store_tables(processes=processes, tell=tell)


def _campaigns_below(path: str | os.PathLike[str]) -> list[CampaignData]:
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"{path!r} is not a path", hint='pass paths one by one: open_campaigns("a", "b")'
        )
    return [campaign_data(folder) for folder in campaign_folders(Path(path))]


def campaign_folders(path: Path, *, with_results: bool = True) -> list[Path]:
    """Return the campaigns at or below a path by name, else results there as a campaign."""
    if path.is_dir() and Layout(path).campaign.exists():
        return [path]
    folders = []
    for folder, below, files in walk(path):
        if Layout(Path(folder)).campaign.name in files:
            folders.append(Path(folder))
            below.clear()
        # A hidden one may be an import that was killed half-way.
        below[:] = sorted((name for name in below if not name.startswith(".")), key=natural_order)
    if folders:
        return folders
    for extension in extensions() if with_results else ():
        if extension.campaign_of:
            return [load(extension.campaign_of)(path)]
    raise InputError(
        f"there is no campaign in {path}",
        hint="name a folder that volbench run or volbench import wrote",
    )


def is_measured_row(row: Mapping[str, object]) -> bool:
    """Return whether a row of the summary is a rate of a finished measured run."""
    return (
        row["phase"] == Phase.MEASURED.value
        and row["status"] == RunState.FINISHED.value
        and row["direction"] != "sync"
    )


def _campaign_names(campaigns: Sequence[CampaignData]) -> list[str]:
    """Return a name for each campaign: its own, else its folder's, else numbered."""
    names = [data.campaign.name for data in campaigns]
    if len(set(names)) == len(names):
        return names
    folders = [data.path.resolve().name for data in campaigns]
    if len(set(folders)) == len(folders):
        return folders
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]


def _with_campaign(frame: pd.DataFrame, *, campaign: str) -> pd.DataFrame:
    dtype = frame["campaign"].dtype
    frame["campaign"] = campaign
    frame["campaign"] = frame["campaign"].astype(dtype)
    if "run" in frame:
        frame["run"] = frame["campaign"] + "/" + frame["run"]
    return frame


def _table_with_campaign(table: pa.Table, *, campaign: str) -> pa.Table:
    """Return a frame as Arrow has it, with the name of its campaign, and before ids of runs."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import

    for name in {"campaign", "run"} & {*table.column_names}:
        index, field = table.schema.get_field_index(name), table.schema.field(name)
        column = table[name]
        if name == "run":
            column = pc.binary_join_element_wise(campaign, column, "/")
        else:
            column = pc.if_else(True, campaign, column)
        table = table.set_column(index, field, column.cast(field.type))
    return table
