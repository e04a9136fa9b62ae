"""Expansion under load: its three parts, its request, and the events beside its run."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.waiting import until
from volbench.engine.campaign.prepare import CampaignRequest
from volbench.engine.hosts.connected_host import Clock
from volbench.errors import CampaignError, InputError, RefusedError
from volbench.extensions.kubernetes import expansion
from volbench.extensions.kubernetes.cluster_spec import ClusterSpec, is_growing
from volbench.extensions.kubernetes.expansion import Expansions, check_expansion, in_three_parts
from volbench.extensions.kubernetes.pod_executor import PodExecutor
from volbench.model.campaign.event import Progress, RunEnded, RunProgress
from volbench.model.campaign.host import Pod
from volbench.model.campaign.planned_run import Run, RunState, Section, Volume, VolumeKind
from volbench.model.profile.profile_model import Job, Order, Phase, Profile
from volbench.plan.expansion.expand import Terms, expand
from volbench.store.layout import Layout

READS = Job(name="reads", options={"rw": "randread", "size": "64m"})
FILL = Job(name="fill", phase=Phase.PRECONDITION, options={"rw": "write", "size": "64m"})
VOLUME = Volume(role="data", kind=VolumeKind.DIRECTORY, target="/volumes/data")


def request(*jobs: Job, **terms: object) -> CampaignRequest:
    """Return a request of a profile with jobs."""
    profile = Profile(name="p", order=Order.SHUFFLED, jobs=jobs)
    return CampaignRequest(
        profiles=(profile,),
        targets={},
        into=Path("c"),
        terms=Terms(seed=1, **terms),  # type: ignore[arg-type]  # fields by name
    )


def test_the_job_runs_before_during_and_after() -> None:
    """In this order, on the same files, after a preparation that is made once."""
    split = in_three_parts(request(FILL, READS))
    runs = expand(split.profiles, {"data": VOLUME}, split.terms).runs
    assert [run.job for run in runs] == ["fill", "reads-before", "reads-during", "reads-after"]
    assert [run.arm for run in runs] == ["", "before", "during", "after"]
    assert len({run.effective(run.sections[0])["filename_format"] for run in runs[1:]}) == 1


@pytest.mark.parametrize(
    ("jobs", "terms"),
    [
        ((READS, READS.model_copy(update={"name": "more"})), {}),
        ((READS,), {"repeat": 2}),
        ((READS,), {"client_counts": (1, 2)}),
        ((READS.model_copy(update={"sections": {"a": {}, "b": {}}}),), {}),
    ],
)
def test_what_a_single_expansion_cannot_answer_is_refused(
    jobs: tuple[Job, ...], terms: dict[str, Any]
) -> None:
    """A volume is expanded once: there is no second one for further jobs or repeats."""
    with pytest.raises(InputError, match="measures one job of one section, once"):
        in_three_parts(request(*jobs, **terms))


def spec(**more: object) -> ClusterSpec:
    """Return a specification of a volume that is expanded."""
    usual: dict[str, Any] = {"campaign": "c", "image": "i", "size": "1Gi", "expand_to": "2Gi"}
    return ClusterSpec(**{**usual, **more})


def test_expansions_that_cannot_be_are_refused() -> None:
    """A smaller size, and a class that does not expand; one that may not be read is tried."""
    found: dict[str, Any] = {"provisioner": "x"}
    cluster = Mock(read_if_allowed=lambda _kind, _name: found)
    for size in ("512Mi", "1Gi"):
        with pytest.raises(InputError, match=f"{size} is not larger than --size 1Gi"):
            check_expansion(cluster, spec(expand_to=size))
    with pytest.raises(RefusedError, match="fast does not expand volumes"):
        check_expansion(cluster, spec(storage_classes=("fast",)))
    for answer in ({}, {"allowVolumeExpansion": True}):
        found = answer
        check_expansion(cluster, spec(storage_classes=("fast",)))


@pytest.mark.parametrize(
    "more",
    [
        {"claims": ("mine",), "size": ""},
        {"os_disk": True},
        {"access_mode": "ReadWriteMany", "replicas": 2},
        {"expand_to": "much"},
    ],
)
def test_volumes_that_are_not_its_own_are_not_expanded(more: dict[str, Any]) -> None:
    """Nor a node's disk, nor one that several pods share."""
    with pytest.raises(InputError, match="--expand"):
        spec(**more)


def claim(wanted: str, size: str) -> dict[str, Any]:
    """Return a claim that asks for a size and has one."""
    requests = {"resources": {"requests": {"storage": wanted}}}
    return {"spec": requests, "status": {"capacity": {"storage": size}}}


def test_an_expansion_lasts_until_the_claim_has_its_size() -> None:
    """Drivers may give more than was asked for."""
    assert is_growing(claim("2Gi", "1Gi"))
    assert is_growing({"spec": claim("2Gi", "")["spec"]})
    assert not is_growing(claim("2Gi", "2Gi"))
    assert not is_growing(claim("1536Mi", "2Gi"))


class Growing:
    """A pod whose claim has the new size at the third look after the request."""

    def __init__(self, *, wanted: str = "1Gi") -> None:
        self.pod = Pod(
            name="p", namespace="n", uid="u", container="fio", node="n", claim="c", expand_to="2Gi"
        )
        self.wanted, self.looks, self.needed = wanted, 0, 2
        self.cluster = Mock(patch=self._patch, read=lambda _kind, _name: self.seen())

    def _patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        assert (kind, name) == ("PersistentVolumeClaim", "c")
        self.wanted = body["spec"]["resources"]["requests"]["storage"]

    def seen(self) -> dict[str, Any]:
        """Return the claim as it is at the next look."""
        self.looks += self.wanted == "2Gi"
        return claim(self.wanted, "2Gi" if self.looks > self.needed else "1Gi")

    def listener(self, root: Path, *, ahead_s: float = 0.0) -> Expansions:
        """Return the listener of a campaign on it."""
        (root / "runs/002-a-during-r1").mkdir(parents=True)
        executor = PodExecutor("h", self.pod, self.cluster)
        host = Mock(host=Mock(pod=self.pod), executor=executor, clock=Clock(offset_s=ahead_s))
        host.name = "h"
        return Expansions([host], Layout(root))


RUN = Run(
    id="002-a-during-r1",
    profile="p",
    job="a-during",
    arm="during",
    host="h",
    volume=VOLUME,
    sections=(Section(name="a"),),
)


def progress(state: str, **changes: object) -> RunProgress:
    """Return a report of the run, or of another one."""
    report = Progress(9.0, state=state, write_iops=1.0)
    return RunProgress(RUN.model_copy(update=changes), report)


def test_it_is_requested_once_some_seconds_after_the_first_io(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while files are laid out, and not in another part; its events are by the host's clock."""
    now_s = [100.0]
    clock = Mock(monotonic=lambda: now_s[0], time=lambda: 1000.0, sleep=time.sleep)
    monkeypatch.setattr(expansion, "time", clock)
    growing = Growing()
    listener = growing.listener(tmp_path, ahead_s=7.5)
    for state, changes in (("layout", {}), ("run", {"arm": "before"})):
        now_s[0] += 60
        listener(progress(state, **changes))
    listener(RunProgress(RUN, Progress(9.0)))  # fio has not reported yet
    now_s[0] += 60
    for _ in range(2):
        now_s[0] += expansion.REQUEST_AFTER_S - 1
        listener(progress("run"))
    assert growing.wanted == "1Gi"
    for _ in range(3):
        now_s[0] += 1
        listener(progress("run"))
    marks = tmp_path / "runs/002-a-during-r1/marks.txt"
    until(lambda: marks.exists() and "expanded" in marks.read_text())
    assert marks.read_text() == "mark 1007.500 expand 2Gi\nmark 1007.500 expanded\n"


def test_a_run_that_is_too_short_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no expansion, so that there is nothing to compare."""
    listener = Growing().listener(tmp_path)
    listener(progress("run"))
    listener(RunEnded(RUN, RunState.FINISHED))
    assert "ended before its volume was expanded" in capsys.readouterr().err


def test_an_end_after_the_campaign_went_on_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured as the part after it was not after it."""
    monkeypatch.setattr(expansion, "REQUEST_AFTER_S", 0.0)
    growing = Growing()
    growing.needed = 1000
    listener = growing.listener(tmp_path)
    listener(progress("run"))
    until(lambda: growing.looks > 2)
    listener(progress("layout", id="003-a-after-r1", arm="after"))
    looks = -1
    while looks < growing.looks:
        looks = growing.looks
        time.sleep(3 * expansion.LOOK_S)
    marks = (tmp_path / "runs/002-a-during-r1/marks.txt").read_text()
    assert marks.endswith("expand 2Gi\n")


def test_a_volume_that_was_expanded_earlier_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after a resume: the run has no expansion, and the user is told."""
    monkeypatch.setattr(expansion, "REQUEST_AFTER_S", 0.0)
    growing = Growing(wanted="2Gi")
    growing.listener(tmp_path)(progress("run"))
    until(lambda: "expanded to 2Gi earlier" in capsys.readouterr().err)
    assert not (tmp_path / "runs/002-a-during-r1/marks.txt").exists()


def test_a_refused_expansion_leaves_no_mark_and_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by a quota: there are no rates during it, and the user is told in the cluster's words."""
    monkeypatch.setattr(expansion, "REQUEST_AFTER_S", 0.0)
    growing = Growing()
    growing.cluster.patch = Mock(side_effect=InputError("exceeded quota: small"))
    listener = growing.listener(tmp_path)
    listener(progress("run"))
    with pytest.raises(CampaignError, match="not expanded while it was measured: the volume of h"):
        listener.check([RUN])
    assert "was not expanded: exceeded quota: small" in capsys.readouterr().err
    assert not (tmp_path / "runs/002-a-during-r1/marks.txt").exists()


@pytest.mark.parametrize(("needed", "is_expanded"), [(2, True), (1000, False)])
def test_an_expansion_that_has_not_ended_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needed: int, *, is_expanded: bool
) -> None:
    """The part after it was measured during it."""
    monkeypatch.setattr(expansion, "REQUEST_AFTER_S", 0.0)
    growing = Growing()
    growing.needed = needed
    listener = growing.listener(tmp_path)
    listener(progress("run"))
    until(lambda: growing.looks > 2)
    with nullcontext() if is_expanded else pytest.raises(CampaignError):
        listener.check([RUN])


def test_no_run_starts_while_the_volume_is_being_expanded() -> None:
    """Where no expansion was asked for, the cluster is not asked either."""
    growing = Growing(wanted="2Gi")
    executor = PodExecutor("h", growing.pod, growing.cluster)
    assert executor.held_back() == "its volume is being expanded"
    stuck = claim("2Gi", "1Gi")
    stuck["status"]["conditions"] = [{"type": "Resizing"}, {"type": "X", "message": "no room"}]
    growing.cluster.read = lambda _kind, _name: stuck
    assert executor.held_back() == "its volume is being expanded: no room"
    growing.cluster.read = lambda _kind, _name: growing.seen()
    growing.looks = 9
    assert executor.held_back() == ""
    growing.cluster.read = Mock(side_effect=AssertionError)
    plain = growing.pod.model_copy(update={"expand_to": ""})
    assert PodExecutor("h", plain, growing.cluster).held_back() == ""


def test_the_claim_of_a_removed_volume_holds_nothing_back() -> None:
    """A campaign that is being removed does not wait for it."""
    growing = Growing()
    growing.cluster.read = lambda _kind, _name: None
    assert PodExecutor("h", growing.pod, growing.cluster).held_back() == ""
