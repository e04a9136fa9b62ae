"""`volbench plot` with real runs: options, numbers beside the picture, several folders."""

import csv
import io
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import volbench as api
from tests.command_line import settings
from volbench.cli.main import cli
from volbench.errors import InputError

pytestmark = pytest.mark.slow

QUICK = settings("size=2m", "direct=0", "sample=250ms")


@pytest.fixture(name="results", scope="module")
def _results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    profile = folder / "two.yaml"
    profile.write_text(
        "name: two\n"
        "defaults: {ioengine: psync, bs: 4k, time_based: 1, runtime: 1s, filename: f}\n"
        "matrix: {name: '{rw}-x{numjobs}', rw: [randread, randwrite], numjobs: [1, 2]}\n",
        encoding="utf-8",
    )
    scratch = folder / "scratch"
    scratch.mkdir()
    for name in ("one", "two"):
        ran = invoke("run", profile, "--on", scratch, *QUICK, "--output", folder / "all" / name)
        assert ran.exit_code == 0, ran.output
    return folder / "all"


def invoke(*arguments: object) -> Result:
    """Call volbench in this process; what it foresees is the result's exception."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.mark.smoke
def test_numbers_are_written_only_on_request(results: Path, tmp_path: Path) -> None:
    """A picture comes alone; with --csv the numbers are those of the summary."""
    drawn = ("plot", "iops", results / "one", "--output", tmp_path)
    assert invoke(*drawn).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["iops.svg"]
    assert invoke(*drawn, "--csv", tmp_path).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iops-chart.csv", "iops.svg"]
    summary = api.open_campaign(results / "one").summary()
    reported = [float(row["iops"]) for row in rows_of(tmp_path / "iops-chart.csv")]
    assert sorted(reported) == pytest.approx(sorted(summary["iops"]))


def test_format_follows_the_name(results: Path, tmp_path: Path) -> None:
    """A file called .png is PNG; --format wins; --csv names another place."""
    picture, numbers = tmp_path / "a.png", tmp_path / "n.csv"
    done = invoke("plot", "iops", results, "--output", picture, "--csv", numbers, "--theme", "dark")
    assert done.exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "a.csv").exists()
    assert {row["campaign"] for row in rows_of(numbers)} == {"one", "two"}
    assert invoke("plot", "iops", results, "--output", picture, "--format", "pdf").exit_code == 0
    assert picture.read_bytes().startswith(b"%PDF")
    unknown = tmp_path / "a.jpg"
    done = invoke("plot", "iops", results, "--output", unknown)
    assert isinstance(done.exception, InputError)
    assert "cannot be written as 'jpg'" in str(done.exception)
    assert not unknown.exists()


def test_files_are_named_after_columns_and_condition(results: Path, tmp_path: Path) -> None:
    """No chart overwrites that of another selection, also not of conditions much alike."""
    for words in (
        (),
        ("--by", "rw"),
        ("--where", "jobs==2 and rw==randread"),
        ("--where", "iops>1"),
        ("--where", "iops>=1"),
        ("--by", "rw", "--where", "jobs==2", "--format", "html"),
    ):
        done = invoke("plot", "iops", results / "one", "--output", tmp_path, *words)
        assert done.exit_code == 0, done.exception
    names = sorted(path.name for path in tmp_path.iterdir())
    assert {"iops.svg", "iops-by-rw.svg", "iops-jobs-2-rw-randread.svg"} < {*names}
    assert "iops-by-rw-jobs-2.html" in names
    assert len(names) == 6


def test_all_charts_of_real_runs(results: Path, tmp_path: Path) -> None:
    """`all` draws what applies into a new folder, and no file gets several charts."""
    charts = tmp_path / "all-fio-3.16"
    done = invoke("plot", "all", results / "one", "--output", charts, "--csv", charts)
    assert done.exit_code == 0, done.exception
    drawn = {path.stem for path in charts.glob("*.svg")}
    assert {"iops-p99", "latency", "ecdf", "series"} <= drawn
    assert {path.stem.removesuffix("-chart") for path in charts.glob("*.csv")} == drawn
    for path in charts.glob("*.csv"):
        assert rows_of(path), path.name
    refused = invoke("plot", "all", results, "--output", tmp_path / "one.svg")
    assert isinstance(refused.exception, InputError)
    assert "not a folder" in str(refused.exception)


def test_size_and_font_can_be_set(results: Path, tmp_path: Path) -> None:
    """Width, height and dpi give the pixels."""
    picture = tmp_path / "a.png"
    size = ("--width", "8", "--height", "5", "--dpi", "50", "--font-size", "12")
    drawn = ("plot", "iops", results / "one", "--output", picture)
    done = invoke(*drawn, *size)
    assert done.exit_code == 0, done.exception
    header = picture.read_bytes()[16:24]
    assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == (400, 250)


def test_wrong_arguments_are_refused(results: Path) -> None:
    """A column or a condition that can't be read is reported with a hint."""
    for arguments, words in (
        (("--by", "volum"), "no column 'volum'"),
        (("--where", "nothing==1"), "no column 'nothing'"),
        (("--where", "job==absent"), "no run"),
    ):
        done = invoke("plot", "iops", results, "--output", "-", *arguments)
        assert isinstance(done.exception, InputError)
        assert words in str(done.exception)


def test_latency_map_of_imported_logs(tmp_path: Path) -> None:
    """Logs of single I/Os that fio wrote, once imported, give a map that holds every I/O."""
    (tmp_path / "fio").mkdir()
    subprocess.run(
        [
            *("fio", "--name=map", "--size=1m", "--rw=randread", "--bs=4k", "--ioengine=psync"),
            *("--time_based", "--runtime=2", "--rate_iops=300", "--write_lat_log=l"),
            *("--log_avg_msec=0", "--output=out.json", "--output-format=json+"),
        ],
        cwd=tmp_path / "fio",
        check=True,
        capture_output=True,
    )
    assert invoke("import", tmp_path / "fio", "--output", tmp_path / "campaign").exit_code == 0
    done = invoke(
        *("plot", "latency-map", tmp_path / "campaign", "--output", tmp_path / "map.svg"),
        *("--csv", tmp_path / "map.csv"),
    )
    assert done.exit_code == 0, done.exception
    counted = sum(int(row["count"]) for row in rows_of(tmp_path / "map.csv"))
    (total,) = api.open_campaign(tmp_path / "campaign").summary()["total_ios"]
    assert 0.9 * total <= counted <= total
