"""YAML syntax: what is accepted, and where each error is reported."""

import pytest

from volbench.errors import Problem, Problems
from volbench.model.document.located_errors import Node
from volbench.model.document.yaml_text import parse_document


def problem_of(text: str) -> Problem:
    """Return the one problem of a text."""
    problems = Problems("p.yaml")
    parse_document(text, problems, what="a profile", needs="a name")
    (problem,) = problems.found
    return problem


def values_of(text: str) -> dict[str, str | bool | None]:
    """Return the plain values of a good text."""
    problems = Problems("p.yaml")
    node = parse_document(text, problems, what="a profile", needs="a name")
    assert not problems.found
    assert isinstance(node, Node)
    return {entry.name: entry.value.raw for entry in node.entries or ()}


def test_an_anchor_may_be_used_again() -> None:
    """YAML 1.2 allows it; the newest counts, and no warning is printed."""
    assert values_of("a: &v one\nb: &v two\nc: *v\n")["c"] == "two"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("name: x\njobs:\n  a: \x01\n", 3, 6),
        ("\ufeffname: x\x07\n", 1, 8),
        ("a: {b: c\n", 1, 4),
        ("a: *nope\n", 1, 4),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a:\n\tb: 1\n", 2, 1),
    ],
)
def test_yaml_errors_have_line_and_column(text: str, line: int, column: int) -> None:
    """Line and column are those of the text, and a way out is told."""
    problem = problem_of(text)
    assert (problem.line, problem.column) == (line, column)
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nrw:read\n", 2, "no colon with a space after it"),
        ("rr: {rw: randread bs: 4k}\n", 1, "a comma or a closing bracket is missing"),
        ("a: 1\nb: 'text\nc: 3\n", 2, "this quote is never closed"),
        ("a: 1\nb: {c: 3\n", 2, "this bracket is never closed"),
        ("a:\n  b c\n  d: 1\n", 3, "this colon is not expected here"),
        ("a:\n\tb: 1\n", 2, "indented with a tab"),
        ("a: @b\n", 1, "must not begin with this character"),
        ("- a\n- b\n", 1, "consists of lines like key: value, this is a list"),
    ],
)
def test_syntax_errors_are_reported_in_plain_english(text: str, line: int, words: str) -> None:
    """The line is that of the mistake, and no word is the parser's."""
    problem = problem_of(text)
    assert (problem.line, words in problem.message) == (line, True), problem
    assert problem.hint
    assert not any(word in str(problem) for word in ("token", "block", "stream", "mapping"))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_reported(depth: int) -> None:
    """Any depth is read or refused, never a traceback."""
    problems = Problems("p.yaml")
    parse_document("a: " + "[" * depth + "]" * depth, problems, what="a list", needs="it")
    assert len(problems.found) <= 1
