"""Arms of a workload in blocks: variants of a profile, their order, seeds and files."""

from collections import Counter

import pytest

from tests.plan.loading import load
from volbench.errors import ProfileError
from volbench.model.campaign.planned_files import planned_files
from volbench.model.campaign.planned_run import Campaign, Volume, VolumeKind
from volbench.model.profile.profile_model import Profile
from volbench.plan.expansion.expand import Terms, balanced, expand
from volbench.plan.profile.load_profile import dump_profile
from volbench.present.tables.plan_tables import runs_table

ENGINES = """
name: engines
defaults: {size: 1m}
phases: {warmup: {fill: {rw: write}}}
jobs: {reads: {rw: randread}, writes: {rw: randwrite}}
variants: {aio: {ioengine: libaio}, uring: {ioengine: io_uring}}
"""


def planned(profile: Profile, repeat: int) -> Campaign:
    """Expand a profile in a directory."""
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
    return expand([profile], {"data": volume}, Terms(name="c", seed=1, repeat=repeat))


def test_arms_of_a_workload_are_adjacent_and_alternate() -> None:
    """A block holds each arm of one workload once; the order turns from block to block."""
    runs = [run for run in planned(load(ENGINES), 2).runs if run.block]
    assert [(run.block, run.job, run.arm) for run in runs] == [
        (1, "reads-aio", "aio"),
        (1, "reads-uring", "uring"),
        (2, "writes-uring", "uring"),
        (2, "writes-aio", "aio"),
        (3, "reads-uring", "uring"),
        (3, "reads-aio", "aio"),
        (4, "writes-uring", "uring"),
        (4, "writes-aio", "aio"),
    ]


def test_arms_of_a_block_do_the_same_in_the_same_files() -> None:
    """Random offsets and files belong to the workload, so that only the variant differs."""
    reads = [run for run in planned(load(ENGINES), 1).runs if run.job.startswith("reads")]
    assert len({run.seed for run in reads}) == 1
    assert {planned_files(run) for run in reads} == {("/data/reads.0.0",)}
    assert [
        run.options["ioengine"]
        if "ioengine" in run.options
        else run.sections[0].options["ioengine"]
        for run in reads
    ] == ["libaio", "io_uring"]


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_each_arm_has_each_place_equally_often(arms: int) -> None:
    """A steady drift then favours none of them."""
    places = Counter(
        (arm, place)
        for block in range(2 * arms)
        for place, arm in enumerate(balanced(range(arms), block))
    )
    assert set(places.values()) == {2}


def test_shuffled_arms_stay_in_their_block() -> None:
    """The order within blocks is drawn; the arms of a workload remain next to each other."""
    profile = load(ENGINES).model_copy(update={"order": "shuffled"})
    runs = [run for run in planned(load(dump_profile(profile)), 20).runs if run.block]
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    assert all(one.block == other.block for one, other in pairs)
    assert {(one.arm, other.arm) for one, other in pairs} == {("aio", "uring"), ("uring", "aio")}


def test_the_design_is_named() -> None:
    """Plan, show and report say how many blocks of which arms there are."""
    campaign = planned(load(ENGINES), 2)
    assert campaign.design == "4 blocks of aio, uring"
    assert "4 blocks of aio, uring; seed 1" in runs_table(campaign, expected_s={}).notes[-1]
    assert planned(load(ENGINES.partition("variants")[0]), 2).design == ""
    stopping = load(f"{ENGINES}repeat: {{until: 3%, max: 5}}\n")
    terms = Terms(name="c", seed=1)
    volume = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/data")
    assert expand([stopping], {"data": volume}, terms).design == "at most 10 blocks of aio, uring"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENGINES.replace(", uring: {ioengine: io_uring}", ""), "nothing to be compared with"),
        (ENGINES.replace("aio: {ioengine", "aio: {ioengin"), "ioengin"),
        ("name: x\njobs: {a: {rw: read, size: 1m, arm: b}}\n", "not the end of the job's name"),
        (
            "name: x\nphases: {warmup: {a-b: {rw: read, arm: b}}}\njobs: {c: {rw: read}}\n",
            "only possible for measured jobs",
        ),
    ],
)
def test_faulty_variants_are_refused(text: str, message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ProfileError, match=message):
        load(text)
