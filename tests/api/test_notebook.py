"""What a notebook shows of campaigns, charts, findings and verdicts."""

import io
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

import volbench
from tests.analyse.compared_rows import candidates_of_three_jobs, findings_of
from tests.finished_campaign import half_finished
from volbench.api.notebook import Findings, Verdicts
from volbench.errors import InputError
from volbench.present.tables.html_table import html_table
from volbench.present.tables.table import Column, Table

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Elements of a text, as a browser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.sources: list[str] = []
        self.words = ""
        self.feed(str(text))  # pieces of Markup would be escaped once more

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element, its attributes and where its picture is from."""
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources += [value or "" for name, value in attrs if name == "src"]

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.words += data


def elements(text: str) -> Elements:
    """Return the elements of a text in which nothing can run, and nothing is fetched."""
    found = Elements(text)
    assert "script" not in found.tags
    assert not [name for name in found.attributes if name.startswith("on")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in found.sources)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a campaign with a hostile name, of two runs, the first of them finished."""
    root = half_finished(tmp_path / "c").root
    plan = root / "campaign.json"
    text = plan.read_text(encoding="utf-8")
    assert '"name": "c"' in text
    plan.write_text(text.replace('"name": "c"', f'"name": "{HOSTILE}"'), encoding="utf-8")
    return root


@pytest.mark.slow
def test_notebooks_show_tables(folder: Path) -> None:
    """Campaigns, findings and verdicts are tables in which nothing can run."""
    campaign = volbench.open_campaign(folder)
    found = findings_of(("late", "warning", HOSTILE, "read"), ("cold", "invalid", "r1", "write"))
    findings, verdicts = Findings(found, runs=3), Verdicts(candidates_of_three_jobs())
    shown = [elements(str(each._repr_html_())) for each in (campaign, findings, verdicts)]
    assert all({"table", "td"} <= {*each.tags} for each in shown)
    assert HOSTILE in shown[1].words
    assert verdicts.summary[0] in shown[2].words
    assert verdicts.remarks[0] in shown[2].words
    assert shown[2].tags.count("tr") == 1 + len(verdicts)
    assert "1 of 2 runs finished" in repr(campaign)
    assert [row["rule"] for row in findings] == ["late", "cold"]
    assert "2 of 3 runs affected" in repr(findings)
    assert verdicts.summary[0] in " ".join(repr(verdicts).split())
    assert set(verdicts.plot().numbers["label"]) == set(verdicts.frame["workload"])


def test_a_long_table_is_cut() -> None:
    """A page shows two hundred rows and counts the others."""
    table = Table("t", [Column[dict[str, int]]("n")], [{"n": n} for n in range(210)])
    shown = elements(html_table(table))
    assert shown.tags.count("tr") == 201
    assert "and 10 more rows" in shown.words


@pytest.mark.slow
def test_a_chart_is_a_picture_a_file_and_numbers(folder: Path, tmp_path: Path) -> None:
    """The picture has the size in which it is shown, and each file is of its format."""
    chart = volbench.open_campaign(folder).plot("iops", theme="dark", title="Mine")
    picture, size = chart._repr_png_()
    with Image.open(io.BytesIO(picture)) as image:
        assert image.width > size["width"]
        assert image.width / image.height == pytest.approx(size["width"] / size["height"], rel=0.02)
    assert set(chart.numbers["direction"]) == {"read", "write"}
    assert "Mine" in repr(chart)
    beginnings = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}
    for ending, beginning in beginnings.items():
        assert chart.save(tmp_path / f"x.{ending}").read_bytes().startswith(beginning)
    with pytest.raises(InputError, match="cannot be written as 'xls'"):
        chart.save(tmp_path / "x.xls")


def test_a_dataset_charts_all_campaigns(folder: Path, tmp_path: Path) -> None:
    """A chart of several campaigns has the results of each, and the findings are those of all."""
    half_finished(tmp_path / "other")
    both = volbench.open_campaigns(folder, tmp_path / "other")
    assert both.plot("IOPS").numbers["campaign"].nunique() == 2
    each = [len(campaign.frame("findings")) for campaign in both.names.values()]
    assert len(both.findings) == sum(each) > 0
    assert both.findings.runs == 2


@pytest.mark.root
def test_a_chart_is_not_saved_through_a_link_of_another_user(folder: Path, tmp_path: Path) -> None:
    """The link is replaced: the file that it leads to stays as it was."""
    own, link = tmp_path / "own", tmp_path / "x.svg"
    own.write_text("only root may change this")
    link.symlink_to(own)
    os.lchown(link, 4711, 4711)
    volbench.open_campaign(folder).plot("iops").save(link)
    assert own.read_text() == "only root may change this"
    assert not link.is_symlink()
