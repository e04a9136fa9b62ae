"""The table of options: names, aliases, suggestions."""

from volbench.errors import nearest
from volbench.fio.jobs.option_table import shipped_table

TABLE = shipped_table()


def test_every_option_is_found_by_each_of_its_names() -> None:
    """An alias leads to the option that has it, unless the alias is an option itself."""
    for name, option in TABLE.options.items():
        assert TABLE.find(name) is option
        for alias in option.aliases:
            found = TABLE.find(alias)
            assert found is not None
            assert alias in {found.name, *found.aliases}
    assert TABLE.find("no-such-option") is None


def test_every_name_survives_a_typing_error() -> None:
    """With one letter doubled the name itself is suggested, or one as near."""
    for name in TABLE.options:
        near = nearest(f"{name[:2]}{name[1:]}", TABLE.names())
        assert near is not None
        assert abs(len(near) - len(name)) <= 1


def test_names_are_found_in_any_case() -> None:
    """A suggestion is found for a name in capitals."""
    assert nearest("IODEPTH", TABLE.names()) == "iodepth"


def test_an_empty_list_has_no_nearest_name() -> None:
    """No names, no suggestion."""
    assert nearest("iodepth", []) is None
