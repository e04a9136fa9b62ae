"""Optional packages: the command that installs them works for this kind of installation."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from volbench import extras


def test_pip_installs_the_packages_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is published under the name of volbench, so the packages themselves are named."""
    monkeypatch.setattr(extras, "find_spec", lambda name: find_spec("pip") or name)
    command = extras.install_command("metrics")
    assert command.startswith(f"{sys.executable} -m pip install 'prometheus-client>=")
    assert "volbench" not in command.removeprefix(sys.executable)


def test_pipx_injects_the_packages_of_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pipx keeps an environment for each program, which its own command extends."""
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert extras.install_command("xlsx").startswith("pipx inject volbench 'openpyxl>=")


def test_uv_installs_the_packages_for_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that uv made has no pip."""
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    command = extras.install_command("xlsx")
    assert command.startswith(f"uv pip install --python {sys.executable} 'openpyxl>=")
