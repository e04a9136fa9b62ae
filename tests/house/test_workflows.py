"""Workflows of the build server and the release: pinned, without passwords, up to date."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.house.project import run
from volbench.cli.main import cli

WORKFLOWS = ("test", "release")


@pytest.fixture(name="workflow", params=WORKFLOWS)
def _workflow(root: Path, request: pytest.FixtureRequest) -> Path:
    return root / ".github" / "workflows" / f"{request.param}.yml"


def steps(workflow: Path) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_all_workflows_are_checked(root: Path) -> None:
    """None is added without these tests."""
    assert {path.stem for path in (root / ".github" / "workflows").iterdir()} == set(WORKFLOWS)


def test_actions_are_pinned_with_their_version(workflow: Path) -> None:
    """By the hash of a commit, which nobody can move, with its tag for readers."""
    lines = re.findall(r"uses: .*", workflow.read_text(encoding="utf-8"))
    assert lines
    for line in lines:
        assert re.fullmatch(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), line


def test_scripts_that_are_called_exist(root: Path, workflow: Path) -> None:
    """Workflows call the scripts that people call, so that both do the same."""
    called = [
        path
        for step in steps(workflow)
        for path in re.findall(r"(?:scripts|\.ci)/[\w-]+", step.get("run", ""))
    ]
    assert called
    for path in called:
        assert (root / path).is_file(), path


def test_every_python_of_the_classifiers_is_tested(root: Path) -> None:
    """What the index promises is what the matrix runs."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [
        name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)
    ]
    text = (root / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]["python"]["strategy"]["matrix"]["python"] == promised


def test_workflows_have_no_known_weakness(root: Path, tmp_path: Path) -> None:
    """Such as templates in scripts, credentials that stay, rights that nobody needs."""
    documented = tmp_path / "github.yml"
    page = (root / "docs" / "how-to" / "use-in-ci.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    documented.write_text(text, encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["nightly"]["steps"]
    for command in (step["run"] for step in steps if "run" in step):
        verb, *words = command.removeprefix("volbench ").split()
        found = cli.get_command(click.Context(cli), verb)
        assert found is not None
        known = {name for option in found.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known
    zizmor = Path(sys.executable).with_name("zizmor")
    done = run(zizmor, "--offline", "--no-progress", root / ".github", documented)
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout + done.stderr
