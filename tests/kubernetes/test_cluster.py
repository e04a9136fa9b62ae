"""Answers of an API server, as errors of ours."""

from __future__ import annotations

import json
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from volbench.errors import AuthError, ConnectError, InputError, VolbenchError
from volbench.kubernetes.cluster import Cluster


def cluster_that_answers(status: int, message: str) -> Cluster:
    """Return a connection to a server that has one answer."""
    answer = SimpleNamespace(status=status, data=json.dumps({"message": message}).encode())
    pool = Mock(request=Mock(return_value=answer))
    settings = Mock(host="https://cluster:6443", auth_settings=dict)
    client = Mock(configuration=settings, rest_client=Mock(pool_manager=pool))
    return Cluster(client, namespace="default")


FORBIDDEN = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'


@pytest.mark.parametrize(
    ("status", "message", "error", "hint"),
    [
        (401, "Unauthorized", AuthError, "kubectl auth whoami"),
        (403, FORBIDDEN, AuthError, "volbench k8s role"),
        (403, 'pods "p" is forbidden: exceeded quota: q, requested: pods=1', InputError, ""),
        (409, "already exists", InputError, ""),
        (422, 'Pod "p" is invalid: spec.x', InputError, ""),
        (429, "too many requests", ConnectError, "readyz"),
        (503, "etcd is down", ConnectError, "readyz"),
    ],
)
def test_an_answer_becomes_an_error_in_its_words(
    status: int, message: str, error: type[VolbenchError], hint: str
) -> None:
    """The class of the error gives the exit code, and its message what the server said."""
    with pytest.raises(error) as caught:
        cluster_that_answers(status, message).list("Pod")
    assert (caught.value.exit_code, caught.value.transient) == (error.exit_code, error.transient)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_what_does_not_exist_is_none() -> None:
    """Reading tells a missing object from a failure; one that may not be read is empty."""
    assert cluster_that_answers(404, "not found").read("Pod", "p") is None
    assert cluster_that_answers(403, FORBIDDEN).read_if_allowed("StorageClass", "s") == {}
    assert cluster_that_answers(404, "not found").delete("Pod", "p") is False
