"""The public face: names, version, errors and what the package says it depends on."""

import ast
import pydoc
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

import volbench
from volbench import errors

PUBLIC = [
    *("Chart", "Dataset", "Findings", "Verdicts", "VolbenchError", "__version__"),
    *("compare", "measure", "open_campaign", "open_campaigns", "run", "trend"),
]


def error_classes() -> dict[str, type[errors.VolbenchError]]:
    """Return every class of the error tree by name."""
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.VolbenchError)
    }


def test_the_public_names_are_as_documented() -> None:
    """Exactly the promised names are public, and each is there."""
    assert sorted(volbench.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(volbench, name) is not None


def test_help_shows_the_public_names() -> None:
    """``help(volbench)`` has every public function and class with its documentation."""
    page = pydoc.plain(pydoc.render_doc(volbench))
    for name in ("class Dataset", "class Verdicts", "run(profile", "open_campaign(path"):
        assert name in page
    assert "campaign.plot" in page


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it does on any module."""
    assert not hasattr(volbench, "open_campaing")


def test_the_version_is_defined_once() -> None:
    """The module, the installed package and pyproject.toml tell the same version."""
    assert volbench.__version__ == version("volbench")


def test_main_errors_have_their_own_exit_code() -> None:
    """Errors right below the root differ in exit code; the ones below them inherit it."""
    children = errors.VolbenchError.__subclasses__()
    codes = [child.exit_code for child in children]
    assert len(set(codes)) == len(codes)
    assert 0 not in codes
    for child in children:
        assert all(sub.exit_code == child.exit_code for sub in child.__subclasses__())


def test_every_error_is_documented(root: Path) -> None:
    """docs/reference/errors.md lists every class of the tree with its exit code, and no other."""
    page = (root / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+Error)` \| (\d+) \|", page, re.MULTILINE)
    assert {name: int(code) for name, code in listed} == {
        name: cls.exit_code for name, cls in error_classes().items()
    }


def test_the_documented_error_tree_is_complete() -> None:
    """The drawing in the docstring of errors.py names every class."""
    drawn = set(re.findall(r"\w+Error", errors.__doc__ or ""))
    assert drawn >= set(error_classes())


# Libraries that another one requires and whose classes its documentation tells users to import
PARTS_OF = {"cryptography": "paramiko", "markupsafe": "jinja2", "pydantic_core": "pydantic"}


@pytest.mark.slow
def test_every_imported_library_is_declared(root: Path, sources: dict[str, ast.Module]) -> None:
    """Each library that the source imports is a dependency or an extra, or a part of one."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    mine = (need for name, needs in extras.items() if name != "dev" for need in needs)
    wanted = [*project["dependencies"], *mine]
    declared = {re.split(r"[<>=~\[ ]", text)[0].lower() for text in wanted}
    imported = {
        name.partition(".")[0]
        for tree in sources.values()
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    owners = packages_distributions()
    undeclared = {
        name
        for name in imported - {"volbench", *sys.stdlib_module_names}
        if not {owner.lower() for owner in owners.get(PARTS_OF.get(name, name), [])} & declared
    }
    assert undeclared == set()
