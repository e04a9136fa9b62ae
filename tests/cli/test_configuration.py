"""Defaults from volbench.toml and config.toml: what they change, and who goes before whom."""

import json
import os
import platform
from pathlib import Path

import pytest

import volbench
from tests.command_line import call

PLAN = ("run", "quick", "--dry-run", "--json", "--set", "runtime=1s")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with two volumes; the user's configuration is beside it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("config/volbench", "work/near", "work/far"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "work"


def planned_volumes(done_stdout: str) -> set[str]:
    """Return the volumes of a plan printed as JSON."""
    return {run["volume"] for run in json.loads(done_stdout)}


def test_the_command_line_precedes_the_folder_and_the_user(folder: Path) -> None:
    """Each of the three replaces the one below it, and what a file decided is said."""
    user = folder.parent / "config" / "volbench" / "config.toml"
    user.write_text(f'targets = "{folder}/far"\n')
    done = call(*PLAN, cwd=folder)
    assert planned_volumes(done.stdout) == {f"{folder}/far"}
    assert f"from {user}: targets data={folder}/far" in done.stderr
    (folder / "volbench.toml").write_text('targets = {data = "near"}\n')
    done = call(*PLAN, cwd=folder)
    assert planned_volumes(done.stdout) == {f"{folder}/near"}
    done = call(*PLAN, "--on", "far", cwd=folder)
    assert planned_volumes(done.stdout) == {f"{folder}/far"}
    assert "volbench.toml" not in done.stderr


def test_targets_on_the_command_line_replace_the_inventory(folder: Path) -> None:
    """A configured list of hosts is not used for a volume of this machine."""
    (folder / "volbench.toml").write_text('inventory = "none.yaml"\n')
    assert call(*PLAN, "--on", "near", cwd=folder).returncode == 0
    done = call(*PLAN, cwd=folder)
    assert done.returncode == 2
    assert "none.yaml" in done.stderr


def test_a_target_that_no_job_uses_is_refused_unless_it_is_configured(folder: Path) -> None:
    """A misspelt role would measure the profile's own volume, and not the one that was named."""
    done = call(*PLAN, "--on", "near", "--on", "dta=far", cwd=folder)
    assert done.returncode == 2
    assert "'dta'" in done.stderr
    assert "did you mean `data`?" in done.stderr
    (folder / "volbench.toml").write_text('targets = {data = "near", os = "far"}\n')
    assert planned_volumes(call(*PLAN, cwd=folder).stdout) == {f"{folder}/near"}


@pytest.mark.slow
def test_results_go_where_the_file_says(folder: Path) -> None:
    """New campaigns are made in the configured folder."""
    (folder / "volbench.toml").write_text('results = "kept"\n')
    done = call(
        *("measure", "--on", "near", "--size", "4m", "--runtime", "1s", "--repeat", "1"), cwd=folder
    )
    assert done.returncode == 0, done.stderr
    [campaign] = (folder / "kept").iterdir()
    assert campaign.name.startswith("measure-")


def test_the_version_names_the_source_of_each_value(folder: Path) -> None:
    """Defaults of volbench, and values of files with the file; a password is masked."""
    text = 'prices = "own.yaml"\ntargets = "nbd://me:hunter2@host/x"\n'
    (folder / "volbench.toml").write_text(text)
    shown = call("--version", "--verbose", cwd=folder).stdout
    assert "  targets: data=nbd://me:***@host/x (from volbench.toml)." in shown
    assert "  inventory: n/a." in shown
    assert "  prices: own.yaml (from volbench.toml)." in shown
    assert "  results: volbench-results (from volbench)." in shown
    (folder / "volbench.toml").write_text("results = 3")
    assert "  error: volbench.toml: results must be a string" in call("-Vv", cwd=folder).stdout


def test_the_version_describes_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Versions and the system; a missing fio or one that cannot start is reported as such."""
    text = call("--version", "--verbose").stdout
    assert f"  volbench: {volbench.__version__}\n" in text
    assert f"kernel {platform.release()}" in text
    assert "pandas" in text
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "  fio: not installed\n" in call("-V", "-v").stdout
    (tmp_path / "fio").write_text("#!/bin/sh\necho cannot map libaio >&2\nexit 127\n")
    (tmp_path / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    assert "  fio: cannot map libaio (" in call("-V", "-v").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('inventry = "x"', "unknown key 'inventry'"),
        ("targets = 3", "targets must be a string or a table of strings"),
        ("results = 3", "results must be a string"),
        ("results =", "(at line 1, column 10)"),
        ("results = " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_mistakes_name_the_file(text: str, message: str, folder: Path) -> None:
    """A wrong file stops every command but help."""
    (folder / "volbench.toml").write_text(text + "\n")
    done = call("status", cwd=folder)
    assert done.returncode == 2
    assert "volbench.toml" in done.stderr
    assert message in done.stderr
    assert call("--help", cwd=folder).returncode == 0


@pytest.mark.root
def test_root_takes_no_file_of_another_user(folder: Path) -> None:
    """Whoever owns it could choose which disk root measures and overwrites."""
    file = folder / "volbench.toml"
    file.write_text('targets = {data = "near"}\n')
    os.chown(file, 65534, 65534)
    done = call("run", "quick", "--dry-run", cwd=folder)
    assert done.returncode == 3
    assert f"{file} belongs to user 65534" in done.stderr
    os.chown(file, 0, 65534)
    for place, mode in ((file, 0o666), (file, 0o664), (folder, 0o775)):
        os.chown(folder, 0, 65534)
        place.chmod(mode)
        done = call("run", "quick", "--dry-run", cwd=folder)
        assert done.returncode == 3
        assert f"{place} can be written by other users" in done.stderr
        place.chmod(0o755)
    elsewhere = file.rename(folder.parent / "own.toml")
    file.symlink_to(elsewhere)
    folder.chmod(0o1777)
    os.chown(file, 65534, 65534, follow_symlinks=False)
    done = call("run", "quick", "--dry-run", cwd=folder)
    assert done.returncode == 3
    assert f"{file} belongs to user 65534" in done.stderr


def test_results_outside_the_folder_are_confirmed(folder: Path) -> None:
    """A checkout of somebody else leads no results to another place without a word."""
    outside = folder.parent / "cron.d"
    (folder / "volbench.toml").write_text(f'results = "{outside}"\ntargets = "{folder}"\n')
    done = call("run", "quick", "--dry-run", cwd=folder)
    assert not outside.exists()
    done = call("run", "quick", cwd=folder)
    assert done.returncode == 3
    assert f"volbench.toml puts results outside its folder, in {outside}" in done.stderr
    assert not outside.exists()


@pytest.mark.parametrize(
    ("key", "value"), [("allow_destroy", "serial:WD-1"), ("python", "/opt/own/python3")]
)
def test_consent_of_a_configured_inventory_is_typed(key: str, value: str, folder: Path) -> None:
    """A checkout of somebody else erases no disk and starts no program of its own on a host."""
    host = f"address: local, volumes: {{data: '{folder}/near'}}"
    (folder / "fleet.yaml").write_text(f"hosts: {{vm1: {{{host}, {key}: '{value}'}}}}\n")
    (folder / "volbench.toml").write_text('inventory = "fleet.yaml"\n')
    done = call(*PLAN, cwd=folder)
    assert done.returncode == 3
    words = f"fleet.yaml, which only volbench.toml names, sets {key} of vm1: {value}"
    assert words in done.stderr
    assert "type it: --inventory fleet.yaml" in done.stderr
    assert call(*PLAN, "--inventory", "fleet.yaml", cwd=folder).returncode == 0
    (folder / "fleet.yaml").write_text(f"hosts: {{vm1: {{{host}}}}}\n")
    assert call(*PLAN, cwd=folder).returncode == 0
