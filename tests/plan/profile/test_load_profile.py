"""Good profiles: what is written is what is meant, also after a dump."""

import itertools

import pytest

from tests.plan.loading import load
from volbench.errors import InputError, ProfileError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.profile_model import Job, Order, Phase, Profile, Start
from volbench.model.profile.profile_settings import Limits, Repeat, Source
from volbench.plan.profile.load_profile import dump_profile, load_profile


def test_every_key_of_a_profile_is_read() -> None:
    """Each key arrives with its unit and type."""
    profile = load(
        """
name: all
description: >-
  two
  lines
source: {title: T, author: A, year: 2019, url: "https://example.org"}
defaults: {bs: 4k, runtime: 1.5h, direct: true, time_based: yes}
volumes: {data: /data}
repeat: 3
order: shuffled
seed: 7
sample: 500ms
limits: {data: {iops: 1100, bandwidth: 125MB/s}, os: {iops: 120}}
phases:
  precondition:
    fill: {rw: write, runtime: null, time_based: null}
  warmup:
    warm: {rw: randwrite, runtime: 10}
jobs:
  a: {role: os, rw: randread, note: hello, limits: {bandwidth: 1GiB/s}}
"""
    )
    assert profile.description == "two lines"
    assert profile.source is not None
    assert profile.source.year == 2019
    assert profile.defaults == {"bs": "4096", "runtime": "5400s", "direct": "1", "time_based": "1"}
    assert (profile.repeats.times, profile.order, profile.seed) == (3, Order.SHUFFLED, 7)
    assert profile.sample_s == 0.5
    assert profile.limits["data"] == Limits(iops=1100, bandwidth_bytes_per_s=125e6)
    fill, warm, a = profile.jobs
    assert (fill.phase, warm.phase) == (Phase.PRECONDITION, Phase.WARMUP)
    assert fill.options["runtime"] is None
    assert warm.options["runtime"] == "10s"
    assert (a.role, a.note) == ("os", "hello")
    assert a.limits == Limits(bandwidth_bytes_per_s=float(2**30))


def test_matrix_is_every_combination_but_the_excluded() -> None:
    """Two by three, less one, plus one; names tell the values as written."""
    profile = load(
        "name: x\nmatrix:\n"
        "  rw: [randread, randwrite]\n"
        "  iodepth: [1, 2, 4]\n"
        "  exclude: [{rw: randwrite, iodepth: 4}]\n"
        "  include: [{rw: read, bs: 1m}]\n"
    )
    depths = "randread-iodepth1 randread-iodepth2 randread-iodepth4 randwrite-iodepth1"
    assert " ".join(job.name for job in profile.jobs) == f"{depths} randwrite-iodepth2 read-bs1m"
    assert profile.jobs[-1].options == {"rw": "read", "bs": "1048576"}


def test_matrix_names_by_template() -> None:
    """A template uses values as written, under any name; odd letters are replaced."""
    profile = load(
        'name: x\nmatrix:\n  name: "{rw}-{blocksize}"\n  rw: [randread]\n  bs: ["4k,8k", 64k]\n'
    )
    assert [job.name for job in profile.jobs] == ["randread-4k_8k", "randread-64k"]


def test_anchors_and_merge_keys() -> None:
    """YAML's own way to share settings works; what a job says itself wins."""
    profile = load("name: x\njobs:\n  a: &base {rw: read, bs: 4k}\n  b: {<<: *base, bs: 8k}\n")
    assert profile.jobs[1].options == {"rw": "read", "bs": "8192"}


@pytest.mark.parametrize(
    "text", ["name: x\r\njobs:\r\n  a: {rw: read}\r\n", "\ufeffname: x\njobs:\n  a: {rw: read}\n"]
)
def test_files_of_other_editors(text: str) -> None:
    """Windows line ends and a byte order mark are no mistake."""
    assert load(text).jobs[0].name == "a"


def test_a_job_may_be_empty() -> None:
    """A job without options takes the defaults."""
    assert load("name: x\ndefaults: {rw: read}\njobs:\n  a:\n  b: {}\n").jobs[0].options == {}


def test_programs_need_consent() -> None:
    """With --allow-exec an option that runs a program is kept."""
    text = "name: x\njobs:\n  a: {rw: read, exec_prerun: /bin/true}\n"
    with pytest.raises(ProfileError):
        load(text)
    assert load(text, allow_exec=True).jobs[0].options["exec_prerun"] == "/bin/true"


def test_wrong_indentation_is_reported_in_plain_english() -> None:
    """Not in those of the parser, such as <block end>."""
    with pytest.raises(ProfileError) as caught:
        load_profile(
            "name: x\njobs:\n  a:\n    rw: read\n   bs: 4k\n", path="p", table=shipped_table()
        )
    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (5, "not YAML: the indentation is wrong here")
    assert "same column" in problem.hint


def test_yaml_1_1_booleans_and_octals_are_not_misread() -> None:
    """Times and words that YAML 1.1 would change stay what they are."""
    profile = load("name: on\nlimits: {}\njobs:\n  no: {rw: read, offset: 010}\n")
    assert profile.name == "on"
    assert profile.jobs[0].name == "no"
    assert profile.jobs[0].options["offset"] == "10"


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


PLAIN = "name: x\njobs: {a: {rw: read, size: 1m}}\n"
STORM = f"start: staggered\nstagger: 1.5s\nclients: 30\n{PLAIN}"
PARTS = """
name: x
defaults: {size: 1m, runtime: 9s}
jobs:
  storm: {sections: {boot: {rw: randread, runtime: 1m}, after: {rw: randrw, wait_for: boot}}}
"""


def test_keys_are_read_and_left_out_keys_mean_one_process() -> None:
    """A profile without them is what it always was."""
    storm, plain = load(STORM), load(PLAIN)
    assert (storm.start, storm.stagger_s, storm.clients) == (Start.STAGGERED, 1.5, 30)
    assert (plain.start, plain.stagger_s, plain.clients) == (Start.TOGETHER, 0.0, 1)


@pytest.mark.parametrize("text", [STORM, PLAIN, f"start: sequential\nclients: 2\n{PLAIN}"])
def test_dumped_profiles_read_back_the_same(text: str) -> None:
    """What campaign.json keeps of a profile holds its starts too."""
    assert load(dump_profile(load(text))) == load(text)


def test_settings_change_them_in_any_order() -> None:
    """A stagger may be set before the start that it belongs to."""
    assert load(STORM, "stagger=240s", "clients=5").stagger_s == 240.0
    both = load(PLAIN, "stagger=20s", "start=staggered")
    assert (both.start, both.stagger_s) == (Start.STAGGERED, 20.0)
    assert load(STORM, "clients=5").clients == 5


def test_another_start_drops_the_stagger() -> None:
    """Who wants all clients at once need not take the stagger away first."""
    together = load(STORM, "start=together")
    assert (together.start, together.stagger_s) == (Start.TOGETHER, 0.0)


@pytest.mark.parametrize(
    ("text", "setting", "words"),
    [
        (PLAIN, "stagger=20s", "no effect with start: together"),
        (PLAIN, "start=staggered", "needs the time between two"),
        (STORM, "stagger=0", "too short to separate the starts"),
        (STORM, "clients=0", "at least 1"),
    ],
)
def test_useless_settings_are_refused(text: str, setting: str, words: str) -> None:
    """The reason is told, as for a key of the profile itself."""
    with pytest.raises(InputError, match=words):
        load(text, setting)


def test_one_section_is_set_by_job_and_section() -> None:
    """The two phases of a client have lengths of their own."""
    (job,) = load(PARTS, "storm.after.runtime=5m", "storm.boot.bs=8k").jobs
    assert job.sections["after"]["runtime"] == "300s"
    assert job.sections["boot"] == {"rw": "randread", "runtime": "60s", "bs": "8192"}
    (cut,) = load(PARTS, "storm.boot.runtime=").jobs
    assert cut.sections["boot"]["runtime"] is None
    with pytest.raises(InputError, match=r"no section 'later'"):
        load(PARTS, "storm.later.runtime=5m")
