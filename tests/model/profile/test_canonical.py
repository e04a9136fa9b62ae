"""Names, values and options of profiles: what may stand in one, and what leaves for job files."""

import pytest

from volbench.errors import InputError, nearest
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.fio_options import Option, canonical, check_text, render_duration
from volbench.model.profile.option_policy import check_option

TABLE = shipped_table()


def _option(name: str) -> Option:
    option = TABLE.find(name)
    assert option is not None
    return option


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("size", "1.5g", "1610612736"),
        ("size", "50%", "50%"),
        ("offset", "2z", "2z"),
        ("bs", "4k,8k", "4096,8192"),
        ("bs", "4k,,8k", "4096,,8192"),
        ("bsrange", "4k-8k,16k-32k", "4096-8192,16384-32768"),
        ("bssplit", "4k/60:64k/", "4096/60:65536/"),
        ("bssplit", "4k/40:8k/60", "4096/40:8192/60"),
        ("runtime", "1min", "60s"),
        ("runtime", "1.5s", "1500ms"),
        ("runtime", "250us", "250us"),
        ("thinktime", 100, "100"),
        ("thinktime", "2ms", "2000"),
        ("direct", True, "1"),
        ("direct", "off", "0"),
        ("time_based", False, "0"),
        ("iodepth", "0x10", "16"),
        ("rate_iops", "100,200", "100,200"),
        ("rw", "randrw:4", "randrw:4"),
        ("percentile_list", "50:99:99.9", "50:99:99.9"),
        ("cpus_allowed", "0-2,5", "0-2,5"),
    ],
)
def test_values_become_canonical(name: str, raw: object, value: str) -> None:
    """A value means what a person means, and leaves as plain numbers, which stay as they are."""
    assert canonical(_option(name), raw) == value
    assert canonical(_option(name), value) == value


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("size", "-4k"),
        ("size", "12.5%"),
        ("size", "６４k"),  # noqa: RUF001 - foreign digits
        *((name, "9" * 5000) for name in ("size", "thinktime", "runtime", "iodepth")),
        ("bssplit", f"4k/{'9' * 5000}"),
        ("iodepth", "0x" + "f" * 5000),
        ("size", "4k,8k"),
        ("bs", "50%"),
        ("bs", "1k,2k,3k,4k"),
        ("bsrange", "4k"),
        ("bssplit", "4k/50:8k/40"),
        ("runtime", "soon"),
        ("runtime", "0.1us"),
        ("iodepth", 0),
        ("iodepth", "4k"),
        ("rwmixread", 101),
        ("direct", 2),
        ("percentile_list", "0:50"),
        ("percentile_list", "50:101"),
        ("percentile_list", ":".join(["50"] * 21)),
        ("rw", "randwirte"),
        ("size", None),
        ("size", ["4k", "8k"]),
    ],
)
def test_impossible_values_are_refused(name: str, raw: object) -> None:
    """The error names the option and a way out."""
    with pytest.raises(InputError) as caught:
        canonical(_option(name), raw)
    assert name in caught.value.message
    assert caught.value.hint


WORDS = ("${HOME}", "$ncpus", "x$mb_memory", "$pagesize", " a", "a ")


@pytest.mark.parametrize("text", [*(f"a{sign}b" for sign in "#;\n\r\0\x1b\x7f\x85\u2028"), *WORDS])
def test_texts_that_fio_would_change_are_refused(text: str) -> None:
    """What would cut, end or change a line of a job file never gets into one."""
    with pytest.raises(InputError):
        check_text(text)


@pytest.mark.parametrize("text", ["a b", "$jobname.$jobnum", "zipf:1.2", "50%", "gr\u00fc\u00df"])
def test_harmless_texts_pass(text: str) -> None:
    """A text that means to fio what it says comes back as it is."""
    assert check_text(text) == text


@pytest.mark.parametrize(
    ("name", "raw", "near"),
    [
        ("iodeptj", 4, "did you mean `iodepth`?"),
        ("numjob", 4, "did you mean `numjobs`?"),
        ("ioengine", "libaoi", "did you mean `libaio`?"),
        ("rw", "randwirte", "did you mean `randwrite`?"),
        ("rw", "random", "`randread`"),  # to read must not lead to a trim, which erases the volume
        ("rw", "wrte", "`write`"),
        ("rw", "rantrim", "randtrim"),
    ],
)
def test_the_nearest_value_is_suggested_for_a_misspelt_one(
    name: str, raw: object, near: str
) -> None:
    """A typing error is answered with what was meant, never with a more destructive pattern."""
    with pytest.raises(InputError) as caught:
        check_option(TABLE, name, raw)
    assert near in caught.value.hint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(300.0, "300s"), (0.0, "0s"), (0.5, "500ms"), (1e-6, "1us"), (1.1, "1100ms")],
)
def test_durations_use_the_largest_whole_unit(seconds: float, text: str) -> None:
    """The largest unit with a whole number is taken."""
    assert render_duration(seconds) == text


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
    """A suggestion is found for a name in capitals, and none for a word unlike all others."""
    assert nearest("IODEPTH", TABLE.names()) == "iodepth"
    assert nearest("xyzzy", ["iodepth", "rw"]) is None
