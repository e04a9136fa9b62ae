"""Answers to expectations as JUnit XML, which CI systems show as tests."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from volbench.analyse.compare.expected_bounds import Answer, Verdict
from volbench.present.formatting import printable
from volbench.present.tables.expectations_table import measured_words, verdict_names

# An undecided expectation is an error: the test could not be carried out
_ELEMENTS = {Answer.FAIL: "failure", Answer.UNDECIDED: "error"}


def junit_report(verdicts: Sequence[Verdict]) -> bytes:
    """Return a test suite with a test case for each expectation, job and direction.

    GitLab shows class, name, time and the text of a failure; Jenkins and the actions of GitHub also
    its message. Times are those of the judged runs.
    """
    answers = [verdict.answer for verdict in verdicts]
    suite = ET.Element(
        "testsuite",
        name="volbench expect",
        tests=str(len(answers)),
        failures=str(answers.count(Answer.FAIL)),
        errors=str(answers.count(Answer.UNDECIDED)),
        skipped="0",
        time=f"{sum(verdict.runtime_s for verdict in verdicts):.3f}",
    )
    names = verdict_names(verdicts)
    for verdict in verdicts:
        name = names(verdict)
        # Systems group tests by the part before the last full stop.
        job = verdict.job.replace(f", {verdict.campaign}", "")
        place = ".".join(filter(None, (verdict.campaign, job)))
        case = ET.SubElement(
            suite,
            "testcase",
            classname=printable(place),
            name=printable(name),
            time=f"{verdict.runtime_s:.3f}",
        )
        expected = f"expected {verdict.expectation.written_bound}"
        measured = f"measured {measured_words(verdict)}"
        message = ", ".join(filter(None, (measured, expected, verdict.reason)))
        if element := _ELEMENTS.get(verdict.answer):
            detail = ET.SubElement(
                case, element, message=printable(message), type=verdict.answer.value
            )
            detail.text = printable(f"{place}: {name}: {message}")
        else:
            ET.SubElement(case, "system-out").text = printable(message)
    ET.indent(suite)
    text = ET.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()
