"""Start, stagger and clients: read, set, written back, and refused where they make no sense."""

import pytest

from tests.plan.loading import load
from volbench.errors import InputError
from volbench.model.profile.profile_model import Start
from volbench.plan.profile.load_profile import dump_profile

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
