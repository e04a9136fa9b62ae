"""Option tables: the shipped one, and what is made of an installed fio's own help."""

import subprocess
from collections.abc import Sequence

import pytest

from volbench.fio.jobs.option_table import (
    UNLISTED,
    installed_table,
    listed_names,
    parse_cmdhelp,
    shipped_table,
)
from volbench.model.profile.fio_options import OptionKind


def _ask(arguments: Sequence[str]) -> str:
    return subprocess.run(["fio", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("size", OptionKind.SIZE),
        ("bsrange", OptionKind.SIZE_RANGE),
        ("bssplit", OptionKind.BLOCK_SPLIT),
        ("runtime", OptionKind.DURATION),
        ("thinktime", OptionKind.MICROSECONDS),
        ("iodepth", OptionKind.INTEGER),
        ("direct", OptionKind.BOOLEAN),
        ("time_based", OptionKind.FLAG),
        ("percentile_list", OptionKind.FLOATS),
        ("rw", OptionKind.CHOICE),
        ("cpus_allowed", OptionKind.TEXT),
    ],
)
def test_the_installed_fio_is_understood(name: str, kind: OptionKind) -> None:
    """Each kind of option is told apart in the help of the fio that is here."""
    assert parse_cmdhelp(_ask([f"--cmdhelp={name}"])).kind is kind


def test_choices_and_limits_are_read() -> None:
    """Values and ranges that fio lists are kept."""
    rw = parse_cmdhelp(_ask(["--cmdhelp=rw"]))
    assert {"read", "write", "trim", "randread", "randwrite", "randtrim"} <= {*rw.choices}
    assert {"rw", "readwrite", "randrw", "trimwrite"} <= {*rw.choices}
    iodepth = parse_cmdhelp(_ask(["--cmdhelp=iodepth"]))
    assert (iodepth.minimum, iodepth.maximum) == (1, None)
    mix = parse_cmdhelp(_ask(["--cmdhelp=rwmixread"]))
    assert (mix.minimum, mix.maximum) == (0, 100)


def test_the_installed_table_holds_exactly_what_fio_lists() -> None:
    """Names are the binary's own, and everything it lists is known."""
    requested: list[str] = []

    def ask(arguments: Sequence[str]) -> list[str]:
        requested.extend(arguments)
        return [_ask([argument]) for argument in arguments]

    table = installed_table(ask)
    general = {name for name, option in table.options.items() if not option.engines}
    assert general == {*listed_names(_ask(["--cmdhelp=all"])), *UNLISTED}
    assert table.engines == tuple(_ask(["--enghelp"]).strip().split("\n\t")[1:])
    assert table.source == "installed"
    known = shipped_table().options
    assert {name for name in requested if name.startswith("--cmdhelp=")} == {
        "--cmdhelp=all",
        *(f"--cmdhelp={name}" for name in general if name not in known),
    }


def test_an_older_fio_lacks_what_it_does_not_list() -> None:
    """An option that the binary does not know is not accepted because we know it."""
    answers = {
        "--version": "fio-3.18\n",
        "--cmdhelp=all": "bs : Block size unit\nbrand_new : Something\n",
        "--enghelp": "Available IO engines:\n\tpsync\n\tlibaio\n",
        "--cmdhelp=brand_new": "brand_new: Something\n type: boolean value (opt=0/1)\n",
        "--cmdhelp=hidden": "hidden: Not listed\n type: string (opt=bla)\n",
    }
    table = installed_table(lambda arguments: [answers.get(each, "") for each in arguments])
    assert table.fio_version == "3.18"
    assert table.engines == ("psync", "libaio")
    assert table.find("iodepth") is None
    assert table.find("hidden") == parse_cmdhelp(answers["--cmdhelp=hidden"])
    assert table.find("blocksize") == shipped_table().find("bs")
    new = table.find("brand_new")
    assert new is not None
    assert new.kind is OptionKind.BOOLEAN
