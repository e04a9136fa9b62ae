"""Why pods are not ready, or have ended, in the cluster's words."""

from collections.abc import Iterator
from itertools import repeat
from unittest import mock

import pytest

from volbench.errors import DeadlineError, TransportError
from volbench.extensions.kubernetes.cluster import Cluster, Manifest
from volbench.extensions.kubernetes.pod_status import Pending, ready_pods, why_ended, why_pending

NOON = "2026-11-22T12:00:00.000000Z"


def pod(status: Manifest | None = None, **metadata: str) -> Manifest:
    """Return a pod with a status."""
    return {"metadata": {"uid": "u1", **metadata}, "status": status or {}}


def waiting(reason: str, message: str = "") -> Manifest:
    """Return the status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"state": state}]}


def warning(reason: str, message: str) -> Manifest:
    """Return a warning."""
    return {"type": "Warning", "reason": reason, "message": message}


OOM = "OOMKilled: it exceeded its memory limit (--pod limit.memory=...)"
KILLED = {"reason": "OOMKilled", "exitCode": 137}
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "message": "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
}


@pytest.mark.parametrize(
    ("status", "events", "expected"),
    [
        (
            {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
            [],
            Pending(f"FailedScheduling: {UNSCHEDULABLE['message']}"),
        ),
        (
            {"phase": "Pending", "conditions": [UNSCHEDULABLE]},
            [warning("ProvisioningFailed", "no disk left")],
            Pending("ProvisioningFailed: no disk left"),
        ),
        (waiting("ErrImagePull", "not found"), [], Pending("ErrImagePull: not found")),
        (waiting("ImagePullBackOff"), [], Pending("ImagePullBackOff", is_final=True)),
        (
            waiting("ContainerCreating"),
            [warning("FailedMount", "timed out")],
            Pending("FailedMount: timed out"),
        ),
        (waiting("ContainerCreating"), [], Pending("the container is being created")),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, [], None),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            [],
            Pending("Evicted: low on memory", is_final=True),
        ),
        (
            {"phase": "Failed", "reason": "PodOSNotSupported", "message": "no"},
            [],
            Pending("PodOSNotSupported: no", is_final=True),
        ),
    ],
)
def test_a_pending_pod_has_a_reason(
    status: Manifest, events: list[Manifest], expected: Pending | None
) -> None:
    """The reason is the cluster's, and shows whether waiting helps."""
    assert why_pending(pod(status), events) == expected


def test_conflicts_of_components_are_no_reasons() -> None:
    """The later one tries again at once: nobody has to do anything."""
    conflict = 'cannot update claim "c": the object has been modified; please apply your changes'
    cluster = mock.create_autospec(Cluster, instance=True)
    cluster.namespace = "disktest"
    unscheduled = {"type": "PodScheduled", "status": "False", "message": conflict}
    cluster.read.return_value = pod({"phase": "Pending", "conditions": [unscheduled]})
    cluster.list.return_value = [warning("FailedUpdate", conflict)]
    with pytest.raises(DeadlineError, match=r"is not ready: the container is being created$"):
        ready_pods(cluster, {"h": ("set-0", "claim")}, timeout_s=-1)


@pytest.mark.parametrize(
    ("times", "newest"),
    [
        (({"lastTimestamp": "2026-11-22T12:00:05Z"}, {"eventTime": NOON}), 0),
        (({"lastTimestamp": "2026-11-22T11:59:05Z"}, {"eventTime": NOON}), 1),
        (
            (
                {"lastTimestamp": "2026-11-22T12:00:05Z"},
                {"eventTime": NOON, "series": {"lastObservedTime": "2026-11-22T12:00:09.000000Z"}},
            ),
            1,
        ),
    ],
)
def test_the_newest_warning_is_told(times: tuple[Manifest, Manifest], newest: int) -> None:
    """The scheduler's events carry other times than the kubelet's; an old reason is none.

    Nor is one about an object without a name, as the API allows.
    """
    events = [
        warning(f"Reason{number}", "") | {"lastTimestamp": None, "series": None} | each
        for number, each in enumerate(times)
    ]
    cluster = mock.create_autospec(Cluster, instance=True)
    cluster.namespace = "disktest"
    cluster.read.return_value = pod({"phase": "Pending"})
    abouts = ({"involvedObject": {"name": name}} for name in ("set-0", "claim"))
    found = [event | about for event, about in zip(events, abouts, strict=True)]
    cluster.list.return_value = [*found, warning("OfNoObject", "") | {"involvedObject": {}}]
    with pytest.raises(DeadlineError, match=f"is not ready: Reason{newest}$"):
        ready_pods(cluster, {"h": ("set-0", "claim")}, timeout_s=-1)


def scripted(looks: Iterator[list[Manifest]], *events: Manifest) -> mock.Mock:
    """Return a cluster whose pods are those of one look after the other."""
    cluster: mock.Mock = mock.create_autospec(Cluster, instance=True)
    cluster.list.side_effect = lambda kind, *_, fields="", **__: (
        next(looks)
        if kind == "Pod"
        else [each for each in events if f"type={each['type']}" in fields]
    )
    return cluster


@pytest.mark.usefixtures("waits")
def test_many_pods_are_awaited_with_three_requests_a_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """However many there are; those that have a lasting reason in common share a line."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    names = [f"set-{number}" for number in range(100)]
    states: list[Manifest] = [*[{"phase": "Pending"}] * 6, ready]
    looks = iter([pod(state, name=name) for name in names] for state in states)
    mount = warning("FailedMount", "timed out") | {"involvedObject": {"name": "set-7"}}
    cluster = scripted(looks, mount)
    wanted = {f"h{name[4:]}": (name, f"data-{name}") for name in names}
    assert [*ready_pods(cluster, wanted, timeout_s=90)] == [*wanted]
    assert len(cluster.method_calls) == 3 * len(states)
    left = "(waiting up to 1m 25s more)"
    assert capsys.readouterr().err.splitlines() == [
        f"h0, h1, h2 and 96 more: Pending: the container is being created {left}",
        f"h7: Pending: FailedMount: timed out {left}",
    ]


def test_what_nothing_ends_is_not_awaited(waits: list[float]) -> None:
    """A cluster without a default class tells it in an event of a claim that is no warning."""
    message = "no persistent volumes available and no storage class is set"
    event = warning("FailedBinding", message) | {"involvedObject": {"name": "claim"}}
    event["type"] = "Normal"
    pods = [pod({"conditions": [UNSCHEDULABLE]}, name="set-0"), pod(name="other")]
    wanted = {"h": ("set-0", "claim"), "i": ("other", "other")}
    with pytest.raises(TransportError, match=f"pod of h cannot start: FailedBinding: {message}"):
        ready_pods(scripted(repeat(pods), event), wanted, timeout_s=600)
    assert sum(waits) < 13


@pytest.mark.usefixtures("waits")
def test_a_pod_that_is_deleted_while_it_is_pending_is_not_awaited() -> None:
    """Nothing makes it again."""
    both = [pod(name="a"), pod(name="b")]
    with pytest.raises(TransportError, match="pod of a cannot start: it was deleted"):
        ready_pods(
            scripted(iter([both, both[1:]])), {"a": ("a", "a"), "b": ("b", "b")}, timeout_s=600
        )


@pytest.mark.usefixtures("waits")
def test_a_lasting_reason_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten minutes are never silent."""
    event = warning("ExternalProvisioning", "waiting for the external provisioner")
    event |= {"type": "Normal", "involvedObject": {"name": "claim"}}
    pods = [pod({"conditions": [UNSCHEDULABLE]}, name=name) for name in ("set-0", "other")]
    wanted = {"h": ("set-0", "claim"), "i": ("other", "claim")}
    with pytest.raises(DeadlineError):
        ready_pods(scripted(repeat(pods), event), wanted, timeout_s=600)
    lines = capsys.readouterr().err.splitlines()
    reason = "h, i: Pending: ExternalProvisioning: waiting for the external provisioner"
    assert lines[0] == f"{reason} (waiting up to 9m 55s more)"
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "it was deleted"),
        (pod(uid="u2"), "it was replaced by another pod of the same name"),
        (pod(deletionTimestamp="2026-11-22T12:00:00Z"), "it is being deleted"),
        (
            pod({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}),
            "Evicted: low on disk",
        ),
        (
            pod({"phase": "Failed", "containerStatuses": [{"state": {"terminated": KILLED}}]}),
            f"its container ended with status 137: {OOM}",
        ),
        (pod({"phase": "Running"}), ""),
    ],
)
def test_an_ended_pod_has_a_reason(found: Manifest | None, expected: str) -> None:
    """A pod that can run nothing any more is distinguished from one that can.

    The end of a container carries its reason and status.
    """
    assert why_ended(found, "u1") == expected
