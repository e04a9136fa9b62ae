"""Tables of results, plans and facts, as a pipe gets them."""

import pytest

from tests.present.tables.table_rows import printed, summary
from volbench.model.campaign.planned_run import (
    Campaign,
    Run,
    RunNote,
    RunState,
    Section,
    Volume,
    VolumeKind,
)
from volbench.present.tables.aggregate_table import aggregate_table
from volbench.present.tables.hosts_tables import facts_text
from volbench.present.tables.plan_tables import runs_table
from volbench.present.tables.render_table import render_table, used_columns
from volbench.present.tables.summary_table import state_notes, summary_table

VOLUME = Volume(role="data", kind=VolumeKind.FILE, target="/mnt/a-rather-long-path/[red]/file")


def run_of(name: str) -> Run:
    """Return a planned run."""
    options = {"rw": "randwrite", "bs": "4096", "iodepth": "16", "direct": "1"}
    sections = (Section(name=name),)
    run = Run(id=f"001-{name}-r1", profile="p", job=name, volume=VOLUME, sections=sections)
    return run.model_copy(update={"options": options})


def campaign_of(*runs: Run) -> Campaign:
    """Return a plan."""
    return Campaign(name="c", created_utc="2026-01-02T03:04:05Z", runs=runs, seed=7)


def test_columns_are_found_by_their_aliases() -> None:
    """An alias such as p99.9 means a column of the frame, in its unit, under the alias."""
    table = summary_table([{"run": "r", "job": "a", "lat_p999_s": 0.0125}])
    lines = render_table(table, "table", columns=["job", "p99.9"]).splitlines()
    assert lines[0].split() == ["job", "p99.9"]
    assert lines[2].split() == ["a", "12.5", "ms"]


def test_a_result_is_shown_with_units() -> None:
    """Numbers stand in the units people use; what was not reported reads n/a, a zero 0."""
    rows = summary(
        iops=1234.5, bw_bytes_per_s=5056512.0, lat_mean_s=0.0008, block_bytes=4096, direct=True
    )
    line = printed(summary_table(rows)).splitlines()[2]
    assert [cell for cell in line.split("  ") if cell.strip()]
    for words in ("1.23k", "5.06 MB/s", "800 us", "4k", "yes"):
        assert words in line
    lines = printed(summary_table(summary(iops=0.0))).splitlines()
    assert lines[2].split()[1:] == ["write", *["n/a"] * 3, "0", *["n/a"] * 5, "finished"]


def test_completion_latency_is_marked() -> None:
    """Where only completion latency was told, it stands in with a star that is explained."""
    text = printed(summary_table(summary(clat_p99_s=0.002)))
    assert "2 ms*" in text
    assert "* completion latency" in text
    both = printed(summary_table(summary(lat_p99_s=0.003, clat_p99_s=0.002)))
    assert ("3 ms" in both, "2 ms" in both) == (True, False)


def test_a_percentile_in_the_last_bin_is_a_lower_bound() -> None:
    """What fio only knows to be longer than its last bin is not missing."""
    text = "clat p99 and above > 17.1 s (the last bin of fio)"
    rows = summary(impossible=text, clat_p50_s=0.1, clat_mean_s=1.0)
    page = summary_table(rows)
    cells = {column.name: column.cell(page.rows[0]) for column in page.columns}
    assert [cells[f"lat_{name}_s"] for name in ("p50", "p99")] == ["100 ms*", "> 17.1 s"]
    assert "> 17.1 s" in printed(summary_table(rows))


def test_the_status_of_an_interrupted_run_is_never_hidden() -> None:
    """However long the names are; its IOPS are beside it."""
    rows = [
        row
        for role in ("data", "logs-of-the-database")
        for repeat in (1, 2)
        for job in ("mixed", "mixed-with-a-long-name")
        for direction in ("read", "write")
        for row in summary(job=job, role=role, repeat=repeat, rw="randrw", direction=direction)
    ]
    rows[0] = {**rows[0], "status": "interrupted"}
    printed_rows = render_table(summary_table(rows), "table", width=80).splitlines()
    assert {"IOPS", "state"} <= {*printed_rows[0].split()}
    assert any("interrupted" in line for line in printed_rows)
    assert max(map(len, printed_rows)) <= 80


def test_a_reason_of_many_runs_is_shown_once() -> None:
    """Of 343 runs that could not open the device, the screen shows one reason and their number."""
    states = {f"{n:03}-b": RunNote(RunState.FAILED, "No such device") for n in range(343)}
    states["500-b"] = RunNote(RunState.INTERRUPTED, "No such device")
    text = "\n".join(state_notes(summary(), states))
    assert "000-b and 342 more failed: No such device" in text
    assert "500-b interrupted: No such device" in text
    assert text.count("No such device") == 2
    many = {f"{n:03}-b": RunNote(RunState.FAILED, f"reason {n}") for n in range(9)}
    text = "\n".join(state_notes(summary(), many))
    assert text.count("failed: reason") == 6
    assert "3 more runs did not finish: see volbench show --runs" in text
    runs = printed(summary_table(summary(), states={"1-b": RunNote(RunState.FAILED, "one\ntwo")}))
    assert all(words in runs for words in ("1-b", "failed", "one", "two"))


def test_run_without_results_has_its_host_and_job() -> None:
    """A row is found by the same columns as those of finished runs, not by the id of the run."""
    common = {"job": "a", "client": 0, "profile": "p", "repeat": 1, "role": "data"}
    rows = [{"run": f"001-a-r1-{name}", "host": name, **common} for name in ("vm0", "vm1")]
    run = run_of("b").model_copy(update={"host": "vm2"})
    note = RunNote(RunState.PLANNED, run=run)
    for finished in (rows, rows[:1]):
        lines = printed(summary_table(finished, states={run.id: note})).splitlines()
        row = next(line.split() for line in lines if "planned" in line)
        assert row[:2] == ["001-b-r1", "vm2"]


def test_names_are_not_read_as_markup_or_terminal_commands() -> None:
    """Brackets and escapes from a file reach the terminal as text."""
    rows = summary(run="[bold]x[/nope]\x1b[31m")
    text = printed(summary_table(rows))
    assert "[bold]x[/nope]\\x1b[31m" in text
    assert "\x1b" not in text


def test_the_plan_is_listed_in_order() -> None:
    """A dry run shows every run with its volume, its options and its time."""
    campaign = campaign_of(run_of("b"), run_of("a"))
    text = printed(runs_table(campaign, expected_s={"001-b-r1": 65.0}))
    assert text.index("001-b-r1") < text.index("001-a-r1")
    assert "randwrite bs=4k iodepth=16 direct=1" in text
    assert VOLUME.target in text
    assert "1m 05s" in text
    assert "seed 7" in text
    many = campaign_of(*[run_of("a")] * 21, run_of("b"))
    table = printed(runs_table(many, expected_s={"001-a-r1": 2.0}, is_brief=True))
    first, second = (line.split() for line in table.splitlines()[2:4])
    assert (first[0], *first[-2:]) == ("a", "21", "42s")
    assert (second[0], *second[-2:]) == ("b", "1", "n/a")


def test_the_plan_distinguishes_sections() -> None:
    """Options of the first three sections are shown and the others counted."""
    options = [{"rw": "randread", "bs": "8192"}, {"rw": "write", "bs": "16384"}, {}, {}]
    sections = tuple(Section(name=f"s{n}", options=own) for n, own in enumerate(options))
    run = run_of("m").model_copy(update={"sections": sections})
    plan = " ".join(printed(runs_table(campaign_of(run), expected_s={})).split())
    assert "s0: randread bs=8k" in plan
    assert "s1: write bs=16k" in plan
    assert "and 1 more" in plan


@pytest.mark.parametrize(
    ("facts", "reported"),
    [
        ({"memory_bytes": 8 << 30}, {"memory": "8 GiB (8589934592 bytes)"}),
        ({"serial": "", "model": None}, {"serial": "n/a", "model": "n/a"}),
        ({"cpu": {"model_name": "x"}}, {"cpu: model name": "x"}),
        ({"rotational": False}, {"rotational": "no"}),
        ({"mount_options": ("rw", "noatime")}, {"mount options": "rw; noatime"}),
        ({"p": [{"n": "a", "size_bytes": 1024}]}, {"p": "n a, size 1 KiB (1024 bytes)"}),
    ],
)
def test_facts_are_shown_in_plain_english(
    facts: dict[str, object], reported: dict[str, str]
) -> None:
    """Facts get a label without underscores and units, and a value that stays exact."""
    assert facts_text(facts) == reported


@pytest.mark.parametrize(
    ("steps", "identity"),
    [
        ([{"repeat": 1}, {"repeat": 2}], ["repeat"]),
        ([{"repeat": 1}], []),
        ([{"label_storage_class": name, "label_zone": "z"} for name in "ab"], ["storage_class"]),
    ],
)
def test_rows_of_an_aggregate_are_told_apart(
    steps: list[dict[str, object]], identity: list[str]
) -> None:
    """By the number of the repeat or the class, if they differ in it; not by a label of all."""
    rows = [{"campaign": "c", "profile": "p", "job": "w", "direction": "write"} | s for s in steps]
    names = [column.name.removeprefix("label_") for column in used_columns(aggregate_table(rows))]
    assert names[: len(identity) + 2] == [*identity, "job", "direction"]
    assert "zone" not in names


def test_an_aggregate_says_why_sums_are_missing() -> None:
    """Each cause once, with its client."""
    row: dict[str, object] = {"job": "w", "direction": "write", "repeat": 1}
    row |= {"clients": 2, "clients_planned": 2}
    known = [row | {"iops": 500.0}, row | {"iops": None, "direction": "sync"}]
    missing = row | {"iops": None, "no_total": "the result of vm1 is invalid"}
    assert "n/a" not in aggregate_table(known).notes[0]
    other = missing | {"no_total": "the result of vm2, vm3 is invalid"}
    (note,) = aggregate_table([*known, missing, other]).notes
    assert note.count("n/a") == 1
    assert note.endswith("; n/a: the result of vm1 is invalid (in 2 rows)")


def test_a_percentile_of_all_clients_in_the_last_bin_has_a_bound() -> None:
    """Their bins give a median alone; without bins no percentile is known."""
    row = {"job": "w", "direction": "write", "lat_p50_s": 0.5, "lat_p99_s": None}
    rows = [row, row | {"lat_p50_s": None}, row | {"lat_p99_s": 0.7}]
    shown = render_table(aggregate_table(rows), "table", columns=["lat_p99_s"]).splitlines()[3:6]
    assert [line.strip() for line in shown] == ["> 17.1 s", "n/a", "700 ms"]
