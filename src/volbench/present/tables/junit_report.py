"""Answers to expectations, and trends, as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.analyse.compare.workload_trends import Trends
from volbench.present.formatting import printable
from volbench.present.tables.compare_table import measure_name, trend_words
from volbench.present.tables.expectations_table import measured_words, verdict_names

# An undecided expectation is an error: the test could not be carried out
_ELEMENTS = {Answer.FAIL: "failure", Answer.UNDECIDED: "error"}


@dataclass(frozen=True)
class _Case:
    """A test: its group, name and result."""

    place: str
    name: str
    message: str
    element: str = ""  # ``failure``, ``error`` or ``skipped``; empty if it passed
    type: str = ""  # kind of a failure or an error
    time_s: float = 0.0


def junit_of_expectations(verdicts: Sequence[Verdict]) -> bytes:
    """Return a test for each expectation, job and direction. Times are those of the judged runs."""
    names = verdict_names(verdicts)
    cases = []
    for verdict in verdicts:
        # Systems group tests by the part before the last full stop.
        job = verdict.job.replace(f", {verdict.campaign}", "")
        expected = f"expected {verdict.expectation.written_bound}"
        measured = f"measured {measured_words(verdict)}"
        cases.append(
            _Case(
                place=".".join(filter(None, (verdict.campaign, job))),
                name=names(verdict),
                message=", ".join(filter(None, (measured, expected, verdict.reason))),
                element=_ELEMENTS.get(verdict.answer, ""),
                type=verdict.answer.value,
                time_s=verdict.runtime_s,
            )
        )
    return _suite("volbench check", cases)


def junit_of_trends(trends: Trends, *, fails_undecided: bool = True) -> bytes:
    """Return a test for each workload and metric; it fails on a regression."""
    elements = dict.fromkeys(trends.undecided, "error" if fails_undecided else "skipped")
    return _suite(
        "volbench trend",
        [
            _Case(
                place=".".join([trend.label, *trend.by.values()]),
                name=measure_name(trend.measure),
                message=trend_words(trend),
                element="failure" if trend.is_alarm else elements.get(trend, ""),
                type=trend.state.value,
            )
            for trend in trends.rows
        ],
    )


def _suite(name: str, cases: Iterable[_Case]) -> bytes:
    """Return a test suite; GitLab shows the text of a failure, Jenkins and GitHub its message."""
    listed = list(cases)
    elements = [case.element for case in listed]
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(listed)),
        failures=str(elements.count("failure")),
        errors=str(elements.count("error")),
        skipped=str(elements.count("skipped")),
        time=f"{sum(case.time_s for case in listed):.3f}",
    )
    for case in listed:
        test = ET.SubElement(
            suite,
            "testcase",
            classname=printable(case.place),
            name=printable(case.name),
            time=f"{case.time_s:.3f}",
        )
        if case.element:
            detail = ET.SubElement(test, case.element, message=printable(case.message))
            if case.element != "skipped":
                detail.set("type", case.type)
                detail.text = printable(f"{case.place}: {case.name}: {case.message}")
        else:
            ET.SubElement(test, "system-out").text = printable(case.message)
    ET.indent(suite)
    text = ET.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()
