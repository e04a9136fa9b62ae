"""Profiles are found by name or by path."""

from pathlib import Path

import pytest

from volbench.errors import InputError
from volbench.plan.bundled_files import read_profile


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    """A path keeps its spelling for messages."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    assert read_profile(str(path)) == ("name: mine\n", str(path))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("quik", "quick"), ("./quick.yml", "quick.yaml"), ("./quik.fio", "quick.yaml")],
)
def test_a_misspelt_name_gets_a_suggestion(
    name: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest bundled name is offered, or the file beside it, whatever its ending."""
    monkeypatch.chdir(tmp_path)
    Path("quick.yaml").touch()
    with pytest.raises(InputError) as caught:
        read_profile(name)
    assert f"`{meant}`" in caught.value.hint


@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 3000])
def test_an_impossible_path_is_reported(path: str) -> None:
    """Too long a name is no traceback."""
    with pytest.raises(InputError) as caught:
        read_profile(path)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * (2 << 20)])
def test_files_that_are_not_profiles_are_refused(tmp_path: Path, content: bytes) -> None:
    """Binary and huge files are answered with words."""
    path = tmp_path / "p.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_profile(str(path))
