"""Random commands from fio's own table of options are planned as fio reads them, or refused."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fio.commands import TABLE, differences, imported
from volbench.errors import InputError
from volbench.model.profile.fio_options import Option, OptionKind
from volbench.model.profile.option_policy import OWN as OF_VOLBENCH
from volbench.model.profile.option_policy import RISKY

QUICK, MANY = range(100), range(100, 2100)
ENGINES = ("sync", "psync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio", "null", "splice")
VALUES = {
    OptionKind.SIZE: ("4k", "1m", "8192", "2g", "8KiB", "64kb", "512"),
    OptionKind.SIZE_RANGE: ("4k-8k", "1k-1m", "8k:4k"),
    OptionKind.BLOCK_SPLIT: ("4k/50:64k/50", "8k/100"),
    OptionKind.DURATION: ("10", "2s", "1m", "500ms", "1min", "0"),
    OptionKind.MICROSECONDS: ("100", "5ms", "2s", "1us"),
    OptionKind.BOOLEAN: ("0", "1"),
    OptionKind.FLOATS: ("50:99", "99.9", "0.5"),
}
WRONG = ("x", "-1", "2", "yes", "1.5g", "10%", "99999999999", "")
TEXTS = {
    "ioengine": ENGINES,
    "filename": ("x", "x:y", "/dev/sdy", "sub/x"),
    "directory": ("d", "/srv/d"),
    "cpus_allowed": ("0", "0-1"),
    "name": ("a", "b", "c", "global", "a b"),
    "description": ("text", "two words"),
    "random_distribution": ("random", "zipf:1.2"),
    "replay_align": ("4096",),
}
COMMON = ("bs", "rw", "size", "iodepth", "numjobs", "direct", "runtime", "time_based", "filename")
OWN = ("--eta=never", "--readonly", "--minimal", "--section=a", "--output-format=json", "--eta")


def value_of(option: Option, draw: random.Random) -> str | None:
    """Return a value for an option, now and then one that is wrong; None for a flag alone."""
    if option.name in TEXTS:
        return draw.choice(TEXTS[option.name])
    if option.kind is OptionKind.FLAG:
        return draw.choice((None, None, "0", "1"))
    if draw.random() < 0.04:
        return draw.choice(WRONG)
    if option.kind is OptionKind.CHOICE:
        return draw.choice(option.choices)
    if option.kind is OptionKind.INTEGER:
        low, high = option.minimum or 1, min(option.maximum or 64, 64)
        return str(draw.randint(min(low, high), high))
    return draw.choice(VALUES[option.kind])


def words(seed: int) -> Iterator[str]:
    """Yield a random command without the word fio."""
    draw = random.Random(seed)  # noqa: S311 - a test, no secret
    names = sorted(
        option.name
        for option in TABLE.options.values()
        if (option.kind is not OptionKind.TEXT or option.name in TEXTS)
        and option.name not in {*OF_VOLBENCH, *RISKY}
        and {*option.engines} <= {*ENGINES}
    )
    yield "--name=first" if draw.random() < 0.8 else "--size=1m"
    for _ in range(draw.randint(1, 8)):
        chance = draw.random()
        if chance < 0.08:
            yield draw.choice(OWN)
            continue
        pool = ("name", "ioengine", "filename", "directory") if chance < 0.35 else COMMON
        option = TABLE.options[draw.choice(pool if chance < 0.65 else names)]
        name = draw.choice((option.name, *option.aliases))
        name = name[: draw.randint(2, len(name))] if draw.random() < 0.1 else name
        dashes, value = draw.choice(("--", "--", "-")), value_of(option, draw)
        if value is None:
            yield f"{dashes}{name}"
        elif option.kind is OptionKind.FLAG or draw.random() < 0.7:
            yield f"{dashes}{name}={value}"
        else:
            yield from (f"{dashes}{name}", value)
    yield "--name=last" if draw.random() < 0.2 else "--thread"


def check(seed: int, folder: Path) -> None:
    """Compare what fio and volbench make of one command."""
    command = [*words(seed)]
    shown = " ".join(f"'{word}'" if " " in word else word for word in command)
    try:
        parsed, job = imported(f"fio {shown}")
    except InputError:
        return
    if parsed.files:  # a value behind a flag, which fio takes for a job file that is missing
        return
    said = {name for notice in job.notices for name in re.findall(r"fio reads ([\w-]+)=", notice)}
    found = differences(command, job.profile, folder)
    unsaid = [text for text in found if not any(f": {name} is" in text for name in said)]
    assert unsaid == [], f"fio {shown}"


@pytest.mark.parametrize("seed", QUICK)
def test_random_commands_are_planned_as_fio_reads_them(seed: int, tmp_path: Path) -> None:
    """No traceback, and no option of a job that fio reads otherwise."""
    check(seed, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", MANY)
def test_many_random_commands(seed: int, tmp_path: Path) -> None:
    """As above, many more."""
    check(seed, tmp_path)
