"""Dependencies pinned for CI: .ci/requirements.txt agrees with pyproject.toml."""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
PYTHONS = ("3.11", "3.12", "3.13")
HINT = "renew it: scripts/lock"


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pinned(root: Path) -> list[tuple[Requirement, int]]:
    """Return each pinned requirement with its number of hashes."""
    text = (root / ".ci" / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(Requirement(_HASH.sub("", line).strip()), len(_HASH.findall(line))) for line in lines]


def declared(project: dict[str, Any], extra: str = "dev") -> list[Requirement]:
    """Return the requirements of the project and of an extra, other extras of its own included."""
    found = [Requirement(text) for text in project["project"]["dependencies"]]
    for text in project["project"]["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == project["project"]["name"]:
            for other in requirement.extras:
                found += declared(project, other)
        else:
            found.append(requirement)
    return found


def test_everything_is_pinned_by_hash(pinned: list[tuple[Requirement, int]]) -> None:
    """One exact version and the hashes of its files: pip --require-hashes accepts nothing else."""
    assert len(pinned) > 50
    for requirement, hashes in pinned:
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert hashes, requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_meets_pyproject(
    project: dict[str, Any], pinned: list[tuple[Requirement, int]], python: str
) -> None:
    """Each declared requirement has exactly one version that fits, on every Python promised."""
    assert SpecifierSet(project["project"]["requires-python"]).contains(f"{python}.0")
    environment = {"python_version": python, "python_full_version": f"{python}.1"}
    for requirement in declared(project):
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        versions = [
            str(pin.specifier).removeprefix("==")
            for pin, _ in pinned
            if canonicalize_name(pin.name) == canonicalize_name(requirement.name)
            and (pin.marker is None or pin.marker.evaluate(environment))
        ]
        assert len(versions) == 1, f"{requirement}: {versions}; {HINT}"
        assert requirement.specifier.contains(versions[0], prereleases=True), HINT


def test_the_lock_has_only_needed_packages(
    project: dict[str, Any], pinned: list[tuple[Requirement, int]]
) -> None:
    """What was taken out of pyproject.toml is not installed by CI any longer."""
    needed: set[str] = set()
    queue = declared(project)
    for requirement in queue:  # it grows
        name = canonicalize_name(requirement.name)
        for below in map(Requirement, requires(name) or ()):
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            if below.marker is None or any(map(below.marker.evaluate, extras)):
                queue += [] if canonicalize_name(below.name) in needed else [below]
        needed.add(name)
    pins = [pin for pin, _ in pinned if pin.marker is None or pin.marker.evaluate()]
    assert {canonicalize_name(pin.name) for pin in pins} == needed, HINT


def test_the_rules_of_bandit_are_on(project: dict[str, Any]) -> None:
    """Rules named S are bandit's: all are selected, none is ignored in the package."""
    lint = project["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    assert [rule for rule in lint["ignore"] if re.match(r"S\d", rule)] == []
    lenient = {
        place
        for place, rules in lint["per-file-ignores"].items()
        if any(re.match(r"S\d", rule) for rule in rules)
    }
    assert lenient == {"scripts/*", "src/volbench/execute/agent/*.py", "tests/**"}
