"""Small reports, and a page as a browser reads it."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pandas as pd

from volbench.analyse.frames.design import design_of
from volbench.analyse.frames.job_frames import plain_rows
from volbench.api.many_campaigns import is_measured_row
from volbench.model.campaign.planned_run import (
    Campaign,
    Run,
    RunNote,
    RunState,
    Section,
    Volume,
    VolumeKind,
)
from volbench.present.answer import answer, valid_results
from volbench.present.report.content import CampaignPart, ReportContent, ReportFigure
from volbench.present.report.report_text import constants_line, days_of, quality_of, without_numbers
from volbench.present.tables.summary_table import summary_table
from volbench.store.parquet_tables import frame_of, table_of

VOID = {"meta", "img", "br", "link", "input", "hr"}
EVIL = "<script>alert('x')</script>\" onclick=\"y"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" id="a"><rect id="b"/></svg>'
PICTURE = "data:image/svg+xml;base64," + base64.b64encode(SVG).decode()


@dataclass
class Page(HTMLParser):
    """A page as a browser reads it: tags in order, text by tag, and what doesn't close."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin as the base class does."""
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; an attribute that stands twice is a fault."""
        self.faults += [
            f"{tag} {name} twice" for name, n in Counter(a for a, _ in attrs).items() if n > 1
        ]
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note an end that belongs to another tag."""
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"stray </{tag}>")

    def handle_data(self, data: str) -> None:
        """Note text with the tag it stands in."""
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of every tag of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag: str) -> list[str]:
        """Return the texts that stand in tags of a kind."""
        return [text for name, text in self.texts if name == tag]


def parsed(html: str) -> Page:
    """Return a page, read."""
    page = Page()
    page.feed(html)
    page.close()
    return page


def run_of(number: int, job: str, *, note: str = "") -> Run:
    """Return a planned run."""
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
    name, sections = f"{number:03d}-{job}-r1", (Section(name=job),)
    return Run(id=name, profile="aks", job=job, volume=volume, sections=sections, note=note)


def row_of(run: Run, **values: object) -> dict[str, object]:
    """Return a row of the summary."""
    row: dict[str, object] = {"campaign": "aks 1/2", "run": run.id, "host": "local"}
    row |= {"profile": run.profile, "job": run.job, "group": run.job, "repeat": run.repeat}
    row |= {"role": "data", "volume": "/data", "phase": "measured", "status": "finished"}
    row |= {"direction": "write", "rw": "randwrite", "block_bytes": 4096, "direct": True}
    row |= {"iodepth": 1, "numjobs": 1, "fio_version": "fio-3.33"}
    return row | {"started_utc": "2026-01-02T03:04:05.678Z"} | values


@dataclass(frozen=True)
class MadeUp:
    """Frames of a made-up campaign; those that are not given are empty."""

    frames: Mapping[str, pd.DataFrame]
    verdict: Sequence[str] = ()

    def frame(self, name: str) -> pd.DataFrame:
        """Return a frame by name."""
        return self.frames[name] if name in self.frames else frame_of(table_of(name, []))

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return the rows of a frame as plain values."""
        return plain_rows(self.frame(name))

    def results(self) -> list[dict[str, object]]:
        """Return finished measured results."""
        return [row for row in self.rows("summary") if is_measured_row(row)]

    def facts(self) -> pd.DataFrame:
        """Return the summary."""
        return self.frame("summary")


def content_of(
    runs: tuple[Run, ...],
    rows: list[dict[str, object]],
    *,
    findings: Sequence[Mapping[str, object]] = (),
    states: Mapping[str, RunNote] | None = None,
) -> ReportContent:
    """Return the content of a report about runs, finished unless states say otherwise."""
    states = {run.id: RunNote(RunState.FINISHED) for run in runs} if states is None else states
    made_up = MadeUp(
        {
            "summary": frame_of(table_of("summary", rows)),
            "findings": frame_of(table_of("findings", findings)),
        }
    )
    results = made_up.results()
    valid, invalid = valid_results(made_up, results)
    design = design_of(valid)
    campaign = Campaign(name="aks 1/2", created_utc="2026-01-02T03:00:00Z", runs=runs, seed=42)
    part = CampaignPart(
        "aks 1/2",
        campaign.model_copy(update={"command": ("a b",)}),
        states,
        hosts=[{"kernel": "Linux 6.1"}],
        volumes=[{"role": "data", "target": "/data"}],
        jobs={run.id: f"[{run.job}]\nrw=randwrite\n" for run in runs},
    )
    count = len({row["run"] for row in results})
    return ReportContent(
        title=f"A campaign, {days_of(design)}",
        constants=constants_line(design, ["aks 1/2"], ""),
        answer=answer(design, invalid=invalid) or [without_numbers(rows)],
        quality=quality_of(design, made_up.rows("findings"), [], [part], runs=count),
        parts=[part],
        figures=[ReportFigure(f"{n} title", f"{n} seen", f"{n} caption", PICTURE) for n in "ab"],
        tables=[summary_table(rows, states=states)] if rows else [],
        tools="fio-3.33",
        generated_utc="2026-01-02T04:00:00.000Z",
        volbench_version="9.9.9",
    )
