"""The error tree: exit codes, places, order."""

import pytest

from volbench import errors
from volbench.analyse.compare.comparability import IncomparableError
from volbench.errors import Problem, Problems, ProfileError, VolbenchError, nearest


def _tree(kind: type[VolbenchError]) -> set[type[VolbenchError]]:
    return {kind}.union(*(_tree(child) for child in kind.__subclasses__()))


def test_the_tree_in_the_docstring_matches_the_classes() -> None:
    """Each error is listed, with its exit code where it is its own, and a star if transient."""
    text = errors.__doc__ or ""
    documented = {kind for kind in _tree(VolbenchError) if kind.__module__ == errors.__name__}
    documented.add(IncomparableError)  # defined beside what it carries
    named = {word for word in text.split() if word.endswith("Error")}
    assert named == {kind.__name__ for kind in documented}
    for kind in documented:
        (line,) = (
            splitline for splitline in text.splitlines() if kind.__name__ in splitline.split()
        )
        inherits = kind.__base__ not in {VolbenchError, Exception}
        assert (str(kind.exit_code) in line.split()) is not inherits
        assert ("*" in line.split()) is kind.transient


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("bad", "p", 3, 5, "jobs.a.bs", "try 4k"), "p:3:5: jobs.a.bs: bad (try 4k)"),
        (Problem("bad", "p.yaml", 3), "p.yaml:3: bad"),
        (Problem("bad", key="jobs"), "jobs: bad"),
        (Problem("bad"), "bad"),
    ],
)
def test_a_problem_shows_only_known_positions(problem: Problem, text: str) -> None:
    """No zero and no empty colon stands for an unknown place."""
    assert str(problem) == text


def test_problems_come_once_and_in_file_order() -> None:
    """Whatever the order they were found in."""
    problems = Problems("p.yaml")
    problems.raise_if_any()
    for line, column in ((9, 1), (2, 7), (2, 3), (9, 1)):
        problems.add("bad", line=line, column=column)
    with pytest.raises(ProfileError) as caught:
        problems.raise_if_any()
    lines = [f"p.yaml:{place}: bad" for place in ("2:3", "2:7", "9:1")]
    assert caught.value.message.splitlines() == lines
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "near"),
    [("azure/P99", "azure/P80"), ("azure/p12", "azure/P10"), ("azure/S", "azure/S6"), ("x9", None)],
)
def test_a_misspelt_name_has_a_nearest_one(name: str, near: str | None) -> None:
    """Names that differ in their number alone are compared by it."""
    known = ["azure/S6", "azure/P1", "azure/P10", "azure/P80", "azure/premium-ssd-v2"]
    assert nearest(name, known) == near
