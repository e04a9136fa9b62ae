"""Answers of an API server, as errors of ours."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import urllib3

from volbench.errors import AuthError, ConnectError, InputError, VolbenchError
from volbench.extensions.kubernetes.cluster import PATIENCE_S, Cluster, ForbiddenError, open_cluster


def answer_of(status: int, content: Mapping[str, object], date: str = "") -> SimpleNamespace:
    """Return an answer of a server."""
    return SimpleNamespace(
        status=status, data=json.dumps(content).encode(), headers={"Date": date} if date else {}
    )


def cluster_that_answers(status: int, message: str) -> Cluster:
    """Return a connection to a server that has one answer."""
    return cluster_with(Mock(return_value=answer_of(status, {"message": message})))


def cluster_with(request: Mock, **more: object) -> Cluster:
    """Return a connection to a server that answers as a function does, with more settings."""
    pool = Mock(request=request)
    settings = Mock(host="https://cluster:6443", auth_settings=dict, **more)
    client = Mock(configuration=settings, rest_client=Mock(pool_manager=pool))
    return Cluster(client, namespace="default")


FORBIDDEN = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'


@pytest.mark.parametrize(
    ("status", "message", "error", "hint"),
    [
        (401, "Unauthorized", AuthError, "auth whoami"),
        (403, FORBIDDEN, AuthError, "volbench k8s render --role"),
        (403, 'pods "p" is forbidden: exceeded quota: q, requested: pods=1', InputError, "quota"),
        (403, 'pods "p" is forbidden: violates PodSecurity "x"', InputError, "a policy of"),
        (403, 'admission webhook "w.example" denied the request: no', InputError, "a policy of"),
        (403, "failed quota: q: must specify limits.cpu for: fio", InputError, "--pod limit.cpu="),
        (404, 'namespaces "none" not found', InputError, "--namespace"),
        (403, "c is forbidden: namespace n because it is being terminated", InputError, "another"),
        (409, "already exists", InputError, ""),
        (422, 'Pod "p" is invalid: spec.x', InputError, ""),
        (429, "too many requests", ConnectError, "readyz"),
    ],
)
def test_a_refusal_of_the_api_server_becomes_an_error_with_its_message(
    status: int, message: str, error: type[VolbenchError], hint: str
) -> None:
    """The class of the error gives the exit code, and its message what the server said."""
    with pytest.raises(error) as caught:
        cluster_that_answers(status, message).list("Pod")
    assert (caught.value.exit_code, caught.value.transient) == (error.exit_code, error.transient)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert ("k8s render --role" in caught.value.hint) is (message == FORBIDDEN)


def test_a_missing_object_is_none() -> None:
    """Reading tells a missing object from a failure; one that may not be read is empty."""
    assert cluster_that_answers(404, "not found").read("Pod", "p") is None
    assert cluster_that_answers(403, FORBIDDEN).read_if_allowed("StorageClass", "s") == {}
    assert cluster_that_answers(404, "not found").delete("Pod", "p") is False


DENIAL = answer_of(403, {"message": FORBIDDEN})
LATER = answer_of(503, {"message": "starting"})
LOST = urllib3.exceptions.ProtocolError("Connection aborted")


@pytest.mark.parametrize("trouble", [DENIAL, LATER, LOST])
def test_failed_requests_are_retried_for_a_while(
    trouble: object, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """It restarts, or does not know its roles yet: a campaign goes on, and says why it waits."""
    api = cluster_with(Mock(side_effect=[*[trouble] * 15, answer_of(200, {"items": [{}]})]))
    api.patience_s = PATIENCE_S
    assert api.list("Pod") == [{}]
    assert sum(waits) == 15
    assert capsys.readouterr().err.count("trying again for") == 1


@pytest.mark.parametrize(
    ("trouble", "error", "within_s"),
    [(DENIAL, ForbiddenError, 30), (LATER, ConnectError, PATIENCE_S + 1)],
)
def test_retries_end_after_the_deadline(
    trouble: object, error: type[VolbenchError], within_s: float, waits: list[float]
) -> None:
    """A server that does not come back, and a permission that is missing, are reported."""
    api = cluster_with(Mock(return_value=trouble))
    with pytest.raises(error):
        api.list("Pod")
    assert sum(waits) == 0  # nothing was made yet
    api.patience_s = PATIENCE_S
    assert api.read_if_allowed("Node", "n") == {} if trouble is DENIAL else True
    with pytest.raises(error):
        api.list("Pod")
    assert 10 < sum(waits) <= within_s


def test_an_object_whose_answer_was_lost_was_made(waits: list[float]) -> None:
    """The second try finds it: it is no error; without a first try that failed, it is one."""
    pod = {"kind": "Pod", "metadata": {"name": "p", "uid": "u"}}
    exists = answer_of(409, {"message": "already exists"})
    api = cluster_with(Mock(side_effect=[LOST, exists, answer_of(200, pod), exists]))
    api.patience_s = PATIENCE_S
    assert api.create(pod) == pod
    with pytest.raises(InputError, match="already exists"):
        api.create(pod)
    assert sum(waits) == 1


def test_times_are_those_of_the_api_server(waits: list[float]) -> None:
    """The date of its last answer, and what has passed since; a broken date changes nothing."""
    dates = ["Wed, 25 Nov 2026 09:00:00 GMT", "yesterday"]
    api = cluster_with(Mock(side_effect=[answer_of(200, {}, date) for date in dates]))
    assert api.server_time().isoformat() == "2026-11-25T09:00:00+00:00"
    waits.append(2.5)
    api.request("GET", "version")
    assert api.server_time().isoformat() == "2026-11-25T09:00:02.500000+00:00"


TLS: dict[str, object] = {"ssl_ca_cert": None, "cert_file": None, "verify_ssl": True}
TLS["no_proxy"] = None


@pytest.mark.parametrize(
    ("proxy", "options"),
    [
        (None, {}),
        (
            "http://me:p%40ss@proxy:3128",
            {
                "http_proxy_host": "proxy",
                "http_proxy_port": 3128,
                "http_no_proxy": [""],
                "proxy_type": "http",
                "http_proxy_auth": ("me", "p@ss"),
            },
        ),
    ],
)
def test_pods_are_reached_as_the_kubeconfig_file_says(
    proxy: str | None, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through its proxy, and with the name that the certificate of the server has."""
    socket = Mock()
    made = Mock(return_value=socket)
    monkeypatch.setattr("websocket.WebSocket", made)
    api = cluster_with(Mock(), tls_server_name="kubernetes.default", proxy=proxy, **TLS)
    assert api.open_exec("p", ["true"], container="fio", timeout_s=1) is socket
    assert made.call_args.kwargs["sslopt"]["server_hostname"] == "kubernetes.default"
    given = socket.connect.call_args.kwargs
    assert {name: value for name, value in given.items() if "proxy" in name} == options


def test_a_proxy_that_cannot_be_used_is_refused() -> None:
    """Otherwise only the pods would be out of reach."""
    api = cluster_with(Mock(), tls_server_name=None, proxy="https://proxy", **TLS)
    with pytest.raises(InputError, match="speaks TLS"):
        api.open_exec("p", ["true"], container="fio", timeout_s=1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"clusters:\n- name: a\n  b: c: d\n", r"mapping values .* line 3"),
        (b"hello", "no cluster is configured"),
        (b"\xff\xfe\x00", "no cluster is configured"),
        (b"current-context: a\ncontexts: [{name: a}]\n", "Invalid"),
    ],
)
def test_a_malformed_kubeconfig_file_is_refused(
    content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it holds, the message is one line with the reason."""
    (tmp_path / "config").write_bytes(content)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(InputError, match=words) as caught:
        open_cluster()
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'token expired: az login' >&2; exit 1", "token expired: az login"),
        ("echo '{}'", "missing key"),
    ],
)
def test_a_credential_plugin_that_fails_is_named(
    script: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In its own words, and before an anonymous request is refused for another reason."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}
    file = tmp_path / "config"
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {**plugin, "args": ["-c", script]}}}],
    }
    file.write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(AuthError, match="the credential plugin") as caught:
        open_cluster()
    assert words in caught.value.message
    assert "role" not in caught.value.hint
    assert "ERROR:root" not in capfd.readouterr().err
