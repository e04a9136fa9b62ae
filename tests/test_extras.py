"""Optional packages: the command that installs them works for this kind of installation."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from volbench import extras


def test_an_extra_is_installed_as_volbench_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By pip; by uv, whose environments have no pip; by pipx. No package index has volbench."""
    monkeypatch.setattr(extras, "find_spec", lambda name: find_spec("pip") or name)
    command = extras.install_command("metrics")
    assert command.startswith(f"{sys.executable} -m pip install 'prometheus-client>=")
    assert "volbench" not in command.removeprefix(sys.executable)
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    command = extras.install_command("xlsx")
    assert command.startswith(f"uv pip install --python {sys.executable} 'openpyxl>=")
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert extras.install_command("xlsx").startswith("pipx inject volbench 'openpyxl>=")
