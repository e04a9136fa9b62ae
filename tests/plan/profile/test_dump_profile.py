"""Dumped profiles read back as the same profile, whatever they hold."""

import itertools

import pytest

from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.profile_model import Job, Order, Phase, Profile
from volbench.model.profile.profile_settings import Limits, Repeat, Source
from volbench.plan.profile.load_profile import dump_profile, load_profile

TEXTS = (
    *(
        "plain",
        "yes",
        "null",
        "1.5",
        "~",
        "a: b",
        "- a",
        "# no comment",
        "'quoted' \"twice\"",
        "{a}",
    ),
    *("two\nlines\n", "\ttab", " blanks ", "gr\u00fc\u00df", "\U0001f4be", "x" * 500),
    *("!tag", "*alias", "%TAG", "<<"),
)
NAMES = ("a", "null", "true", "no", "1", "0x1", "1e3", "-", "_", "x" * 100)


def again(profile: Profile) -> Profile:
    """Dump and load a profile."""
    return load_profile(dump_profile(profile), path="dump.yaml", table=shipped_table())


@pytest.mark.parametrize("text", TEXTS)
def test_texts_stay_strings(text: str) -> None:
    """Description, source and note may hold anything that YAML could take for something else."""
    profile = Profile(
        name="x",
        description=text,
        source=Source(title=text, author=text, year=2019, url=text),
        jobs=(Job(name="a", note=text, options={"rw": "read"}),),
    )
    assert again(profile) == profile


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_strings(name: str) -> None:
    """A profile, job, section or role may be called like a YAML word or number."""
    sections = {name: {"rw": "read"}, "other": {"rw": "write", "bs": None}}
    jobs = (Job(name=name, role=name, sections=sections),)
    profile = Profile(name=name, jobs=jobs, volumes={name: "/x"}, limits={name: Limits(iops=1)})
    assert again(profile) == profile


@pytest.mark.parametrize(
    ("sample_s", "iops", "rate"),
    [
        (0.0, None, 125e6),
        (0.1, 0.5, 1.0),
        (0.123456789, 1e9, 1e12),
        (3600.0, 1100.25, 2**40 / 3),
        (1.0, 1 / 3, 0.00001),
    ],
)
def test_numbers_lose_nothing(sample_s: float, iops: float | None, rate: float) -> None:
    """However many digits they have."""
    limits = {"*": Limits(iops=iops, bandwidth_bytes_per_s=rate)}
    jobs = (Job(name="a", limits=limits["*"]),)
    profile = Profile(name="x", jobs=jobs, limits=limits, sample_s=sample_s)
    assert again(profile) == profile


def test_every_mix_of_phase_and_order() -> None:
    """Phases, order, seed and repeat come back."""
    jobs = [Job(name=phase.value, phase=phase, options={"rw": "write"}) for phase in Phase]
    for order, seed, repeat in itertools.product(Order, (None, 0, 2**31 - 1), (1, 10_000)):
        profile = Profile(
            name="x", jobs=tuple(jobs), order=order, seed=seed, repeats=Repeat(times=repeat)
        )
        assert again(profile) == profile
