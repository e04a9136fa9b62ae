"""Answers to expectations: one screen of many, the failed first."""

from collections.abc import Sequence
from dataclasses import replace

from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.repeat_statistics import Interval
from volbench.model.frames.expectation import parse_expectation
from volbench.present.tables.expectations_table import expectations_table
from volbench.present.tables.render_table import render_table


def verdicts(*answers: Answer) -> Sequence[Verdict]:
    """Return answers to an expectation of many jobs."""
    expectation, value = parse_expectation("p99 < 5ms"), Interval(0.004, 0.0039, 0.0041)
    return [
        Verdict(expectation, f"job{number}", "read", answer, value, 3, "")
        for number, answer in enumerate(answers)
    ]


def test_many_answers_are_one_screen_with_their_counts() -> None:
    """What failed comes first, then what is undecided; few answers, and data, are all listed."""
    many = verdicts(*[Answer.PASS] * 70, *[Answer.UNDECIDED] * 15, *[Answer.FAIL] * 10)
    table = expectations_table(many, is_brief=True)
    assert table.title == "95 answers: 10 fail, 15 undecided, 70 pass."
    shown = [verdict.answer for verdict in table.rows]
    assert shown == [Answer.FAIL] * 10 + [Answer.UNDECIDED] * 10
    assert table.notes == ["75 more: --format csv lists all, --where selects some"]
    assert expectations_table(many).rows == many
    assert expectations_table(many[40:], is_brief=True).rows == many[40:]


def test_long_paths_are_shortened_where_their_ends_are_distinct() -> None:
    """A job on several volumes is named with the end of each path; data have whole paths."""
    first = verdicts(Answer.PASS)[0]
    for names, is_short in ((("a", "b"), True), (("same", "same"), False)):
        jobs = [
            f"read on /{letter}/{'z' * 60}/{name}" for letter, name in zip("xy", names, strict=True)
        ]
        table = expectations_table([replace(first, job=job) for job in jobs])
        assert [row["job"] for row in table.records()] == jobs
        printed = render_table(table, "markdown")
        assert ("z" * 60 in printed) is not is_short
        assert ("..." in printed) is is_short
