"""Connection to the API server of a Kubernetes cluster; objects are plain dictionaries.

The official client reads kubeconfig files, refreshes credentials and verifies the server. Its typed
models are not used: they differ between versions, and manifests are dictionaries anyway.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

import click

from volbench.errors import AuthError, ConnectError, InputError, TransportError, VolbenchError
from volbench.extras import install_command

if TYPE_CHECKING:
    from websocket import WebSocket

_Answer = TypeVar("_Answer")
Manifest = dict[str, Any]  # An object of the API, or a part of one, as its JSON

# The API server itself ends a request after 60 s; a healthy one answers within 1 s (its own SLO).
# Noticed by: tests/extensions/kubernetes/test_faults.py, where it is stopped and started again.
_TIMEOUT_S = 30.0
_LAST_S = 2.0  # the same after a second Ctrl-C; no verdict depends on it
# An API server that restarts is back within half a minute; denials of one that has just started,
# before it knows its roles, end within seconds.
# Noticed by: tests/test_cluster.py::test_failed_requests_are_retried_for_a_while
PATIENCE_S = 120.0
DENIAL_S = 20.0
_RETRY_S = 1.0
_DENIED = re.compile(r'\bUser "[^"]*" cannot ')  # by the rules of RBAC, not by admission
_NO_NAMESPACE = re.compile(r'^namespaces "[^"]*" not found|namespace \S+ because it is being term')
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STREAMS = ("stdin", "stdout", "stderr")
_JSON = "application/json"
_ACCESS_REVIEWS = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Kind(NamedTuple):
    """Where the API keeps objects of a kind."""

    group: str  # path of the API group and version
    plural: str  # last part of the path
    is_namespaced: bool = True  # whether its objects belong to a namespace


# Kinds of objects that volbench and its tests use
KINDS = {
    "ClusterRole": Kind("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": Kind("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "ConfigMap": Kind("api/v1", "configmaps"),
    "CSINode": Kind("apis/storage.k8s.io/v1", "csinodes", False),
    "Event": Kind("api/v1", "events"),
    "Job": Kind("apis/batch/v1", "jobs"),
    "Lease": Kind("apis/coordination.k8s.io/v1", "leases"),
    "Namespace": Kind("api/v1", "namespaces", False),
    "Node": Kind("api/v1", "nodes", False),
    "PersistentVolume": Kind("api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": Kind("api/v1", "persistentvolumeclaims"),
    "Pod": Kind("api/v1", "pods"),
    "Role": Kind("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": Kind("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Secret": Kind("api/v1", "secrets"),
    "ServiceAccount": Kind("api/v1", "serviceaccounts"),
    "StorageClass": Kind("apis/storage.k8s.io/v1", "storageclasses", False),
    "VolumeSnapshot": Kind("apis/snapshot.storage.k8s.io/v1", "volumesnapshots"),
    "VolumeSnapshotClass": Kind("apis/snapshot.storage.k8s.io/v1", "volumesnapshotclasses", False),
    "VolumeSnapshotContent": Kind(
        "apis/snapshot.storage.k8s.io/v1", "volumesnapshotcontents", False
    ),
    "VolumeAttachment": Kind("apis/storage.k8s.io/v1", "volumeattachments", False),
}


class RequestError(InputError):
    """The API server rejected a request."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status  # of HTTP
        self.is_repeated = False  # whether an earlier try may have reached the server


class ForbiddenError(AuthError):
    """The account may not do that in the cluster."""


class Cluster:
    """Connection to a cluster, for one namespace; thread-safe.

    Every method that sends a request raises:
        InputError: the object is invalid, exists already, is not found, or exceeds a quota.
        AuthError: the credentials are not accepted, or a permission is missing.
        ConnectError: the server is out of reach, or overloaded.
    """

    def __init__(self, client: Any, *, namespace: str, context: str = "") -> None:  # noqa: ANN401 - the client is imported lazily and untyped
        self._client = client
        self._settings = client.configuration
        self.namespace = namespace
        self.context = context
        self.timeout_s = _TIMEOUT_S  # of a request
        self.patience_s = 0.0  # how long a request is repeated that has failed for a while only
        self.denial_patience_s = 0.0  # the same for denied ones, if that is longer
        self.outage_s = 0.0  # time in which requests were repeated
        self._clock: tuple[datetime, float] | None = None  # of the server, and monotonic, at once

    @property
    def address(self) -> str:
        """URL of the API server."""
        return str(self._settings.host).rstrip("/")

    @property
    def options(self) -> str:
        """Options that name this cluster and namespace on the command line."""
        return shlex.join(["--namespace", self.namespace, *self._context_option])

    @property
    def _context_option(self) -> tuple[str, ...]:
        return ("--context", self.context) if self.context else ()

    def command(self, verb: str, *names: str) -> str:
        """Return the command ``volbench k8s VERB NAME...`` for this cluster, in any shell."""
        files = os.environ.get("KUBECONFIG", "")
        where = f"KUBECONFIG={shlex.quote(files)} " if files else ""
        return f"{where}{shlex.join(['volbench', 'k8s', verb, *names])} {self.options}"

    def render_role(self, account: str) -> str:
        """Return the command that makes a service account with the rights of campaigns."""
        return f"{self.command('render', '--role', account)} | {self.kubectl('apply', '-f', '-')}"

    def kubectl(self, *words: str, is_namespaced: bool = True) -> str:
        """Return a command of kubectl for this cluster."""
        files = os.environ.get("KUBECONFIG", "")
        file = ("--kubeconfig", files) if files and os.pathsep not in files else ()
        space = ("-n", self.namespace) if is_namespaced else ()
        return shlex.join(["kubectl", *file, *self._context_option, *space, *words])

    def require_namespace(self) -> None:
        """Refuse a namespace that does not exist."""
        if self.read_if_allowed("Namespace", self.namespace) is None:
            raise InputError(
                f"there is no namespace {self.namespace}",
                hint=f"list them: {self.kubectl('get', 'namespaces', is_namespaced=False)}",
            )

    def give_up_soon(self) -> None:
        """From now on, try each request once and for seconds: the user wants the end."""
        self.patience_s = self.denial_patience_s = 0.0
        self.timeout_s = _LAST_S

    def server_time(self) -> datetime:
        """Return the time by the API server's clock, whatever the clock of this machine says."""
        if self._clock is None:
            self.request("GET", "version")
        if self._clock is None:  # a proxy removes the header
            return datetime.now(UTC)
        then, at_s = self._clock
        return then + timedelta(seconds=time.monotonic() - at_s)

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create an object and return it; with `dry_run`, only let the server check it."""
        query = [("dryRun", "All")] if dry_run else []
        kind = manifest["kind"]
        try:
            return self.request("POST", self._path(kind), query=query, body=manifest)
        except RequestError as error:
            if error.status == 409 and error.is_repeated:  # the answer to an earlier try was lost
                made = self.read(kind, manifest["metadata"]["name"])
                if made is not None:
                    return made
            raise

    def read(self, kind: str, name: str, *, is_optional: bool = False) -> Manifest | None:
        """Return an object, or None if it does not exist; for `is_optional` see `request`."""
        try:
            return self.request("GET", self._path(kind, name), is_optional=is_optional)
        except RequestError as error:
            if error.status == 404:
                return None
            raise

    def read_if_allowed(self, kind: str, name: str) -> Manifest | None:
        """Return an object, None if it does not exist, or an empty one if reading is forbidden."""
        try:
            return self.read(kind, name, is_optional=True)
        except ForbiddenError:
            return {}

    def require_storage_class(self, name: str) -> None:
        """Refuse a storage class that does not exist."""
        if self.read_if_allowed("StorageClass", name) is None:
            raise InputError(
                f"the cluster has no storage class {name}",
                hint=f"list them: {self.command('storageclass')}",
            )

    def list(self, kind: str, selector: str = "", *, fields: str = "") -> list[Manifest]:
        """Return the objects of a kind that a label selector and a field selector match."""
        query = [("labelSelector", selector)] if selector else []
        query += [("fieldSelector", fields)] if fields else []
        items: list[Manifest] = self.request("GET", self._path(kind), query=query).get("items", [])
        return items

    def may(self, right: Mapping[str, str]) -> bool:
        """Return whether the account has a right; its fields: ResourceAttributes of the API."""
        body = {"spec": {"resourceAttributes": {**right}}}
        return bool(self.request("POST", _ACCESS_REVIEWS, body=body)["status"]["allowed"])

    def patch(self, kind: str, name: str, body: Manifest) -> Manifest:
        """Merge fields into an object and return it."""
        return self.request(
            "PATCH", self._path(kind, name), body=body, media_type="application/merge-patch+json"
        )

    def delete(self, kind: str, name: str, *, uid: str = "", grace_s: int | None = None) -> bool:
        """Delete an object with what it owns, if it has this UID; return whether it existed."""
        body: Manifest = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self.request("DELETE", self._path(kind, name), body=body)
        except RequestError as error:
            if error.status not in {404, 409}:  # gone, or another one of that name
                raise
            return False
        return True

    def logs(self, pod: str, container: str = "") -> str:
        """Return the output of a container of a pod."""
        query = [("container", container)] if container else []
        return self._send("GET", f"{self._path('Pod', pod)}/log", query).decode("utf-8", "replace")

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        is_optional: bool = False,
        **content: Any,  # noqa: ANN401 - of `_send_once`
    ) -> Manifest:
        """Send a request and return the object of the answer.

        Args:
            is_optional: whether a denied permission is expected: it is no reason to try again.
            content: ``body``, an object, and ``media_type``, if it is not JSON.
        """
        data = self._send(method, path, query, is_optional=is_optional, **content)
        try:
            answer: Manifest = json.loads(data or b"{}")
        except ValueError as error:
            raise TransportError(
                f"{self.address} does not answer as an API server",
                hint="check the server address of the kubeconfig context",
            ) from error
        return answer

    def open_exec(
        self, pod: str, argv: Sequence[str], *, container: str, timeout_s: float
    ) -> WebSocket:
        """Start a program in a container and return the web socket of its streams."""
        query = [("container", container), *((name, "true") for name in _STREAMS)]
        query += [("command", word) for word in argv]
        path = f"{self._path('Pod', pod)}/exec?{urlencode(query, quote_via=quote)}"
        # Where the server is out of reach the caller waits, and knows for how long.
        return self._patiently(lambda: self._connect(path, timeout_s), retried=(AuthError,))

    def _connect(self, path: str, timeout_s: float) -> WebSocket:
        import websocket

        settings = self._settings
        tls: dict[str, Any] = {
            "context": _tls(
                settings.ssl_ca_cert,
                settings.cert_file,
                settings.key_file,
                is_verified=settings.verify_ssl,
            )
        }
        if self._settings.tls_server_name:
            tls["server_hostname"] = self._settings.tls_server_name
        socket = websocket.WebSocket(sslopt=tls, skip_utf8_validation=True)
        try:
            socket.connect(
                f"ws{self.address.removeprefix('http')}/{path}",
                timeout=timeout_s,
                header=[f"{name}: {value}" for name, value in self._headers().items()],
                subprotocols=list(_PROTOCOLS),
                **_proxy_options(self._settings.proxy, self._settings.no_proxy),
            )
        except websocket.WebSocketBadStatusException as error:
            socket.shutdown()
            raise self._refusal(error.status_code, error.resp_body or b"", "POST") from error
        except (websocket.WebSocketException, OSError, ssl.SSLError) as error:
            socket.shutdown()
            raise self._unreachable(error) from error
        return socket

    def close(self) -> None:
        """Close the connections."""
        self._client.rest_client.pool_manager.clear()

    def _path(self, kind: str, name: str = "") -> str:
        group, plural, is_namespaced = KINDS[kind]
        space = f"namespaces/{quote(self.namespace)}/" if is_namespaced else ""
        return f"{group}/{space}{plural}" + (f"/{quote(name)}" if name else "")

    def _send(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        *,
        is_optional: bool = False,
        **content: Any,  # noqa: ANN401 - the same
    ) -> bytes:
        """Send a request until it is answered, or for as long as `patience_s` says."""
        return self._patiently(
            lambda: self._send_once(method, path, query, **content), is_optional=is_optional
        )

    def _patiently(
        self,
        send: Callable[[], _Answer],
        *,
        is_optional: bool = False,
        retried: tuple[type[VolbenchError], ...] = (ConnectError, AuthError),
    ) -> _Answer:
        """Call a function until none of some errors is raised, or as `patience_s` says."""
        begun_s, tries = time.monotonic(), 0
        while True:
            try:
                answer = send()
            except retried as error:
                is_denial = isinstance(error, AuthError)
                limit_s = self.patience_s
                if is_denial:
                    limit_s = max(min(limit_s, DENIAL_S), self.denial_patience_s)
                waited_s = time.monotonic() - begun_s
                if waited_s >= limit_s or (is_denial and is_optional):
                    raise
                if not tries:
                    click.echo(f"{error.message}; trying again for {limit_s:.0f} s", err=True)
                tries += 1
                time.sleep(_RETRY_S)
            except RequestError as error:
                error.is_repeated = tries > 0
                raise
            else:
                self.outage_s += time.monotonic() - begun_s if tries else 0.0
                return answer

    def _send_once(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        *,
        body: Manifest | None = None,
        media_type: str = _JSON,
    ) -> bytes:
        import urllib3

        url = f"{self.address}/{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = self._client.rest_client.pool_manager.request(
                method,
                url,
                headers={"Accept": "*/*", "Content-Type": media_type} | self._headers(),
                body=None if body is None else json.dumps(body),
                timeout=self.timeout_s,
                retries=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error
        with suppress(ValueError):  # not a date: the last one counts
            date = parsedate_to_datetime(answer.headers.get("Date", ""))
            self._clock = date.astimezone(UTC), time.monotonic()
        if answer.status >= 300:
            raise self._refusal(answer.status, answer.data, method)
        data: bytes = answer.data
        return data

    def _headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request, refreshed where they expire."""
        with _plugin_errors():
            settings = self._settings.auth_settings().values()
        return {setting["key"]: str(setting["value"]) for setting in settings}

    def _refusal(self, status: int, data: bytes, method: str) -> VolbenchError:
        """Return the error of an answer, in the server's words."""
        reason = _message_of(data) or f"status {status}"
        if status == 401:
            return AuthError(
                f"the cluster rejected the credentials: {reason}",
                hint=f"check with: {self.kubectl('auth', 'whoami')}",
            )
        if status == 403 and _DENIED.search(reason):
            return ForbiddenError(
                f"the cluster denied permission: {reason}",
                hint=f"an administrator grants what it needs: {self.render_role('volbench')}",
            )
        if status == 429 or status >= 500:
            return ConnectError(
                f"the API server cannot answer now: {reason}",
                hint=f"check the cluster: {self.kubectl('get', '--raw', '/readyz')}",
                sent=method != "GET",
            )
        hint = ""
        if _NO_NAMESPACE.search(reason):
            hint = (
                f"name another --namespace; see: {self.kubectl('get', 'ns', is_namespaced=False)}"
            )
        elif "must specify limits" in reason or "must specify requests" in reason:
            hint = "give the pods what the quota counts, such as --pod limit.cpu=4 --pod "
            hint += "limit.memory=8Gi --pod request.cpu=4; a limit that throttles fio is reported"
        elif status == 409 and "already exists" in reason:
            hint = f"choose another name; see what is there: {self.command('status')}"
        elif "exceeded quota" in reason:
            hint = f"see what is left: {self.kubectl('describe', 'resourcequota')}"
        elif status == 403:
            hint = "this is a policy of the cluster, not a missing permission: change the options"
            hint += " that it names, or ask the cluster administrators"
        return RequestError(f"the cluster rejected the request: {reason}", status=status, hint=hint)

    def _unreachable(self, error: Exception) -> ConnectError:
        return ConnectError(
            f"the API server at {self.address} cannot be reached: {_cause(error)}",
            hint=f"check the cluster: {self.kubectl('cluster-info')}",
            sent=False,
        )


def _cause(error: BaseException) -> str:
    """Return the cause of a failed connection, in the words of the system if it has some."""
    inner = (one for one in (*error.args, error.__cause__) if isinstance(one, BaseException))
    if (cause := next(inner, None)) is not None:
        return _cause(cause)
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


@cache
def _tls(
    authorities: str | None, certificate: str | None, key: str | None, *, is_verified: bool
) -> ssl.SSLContext:
    """Return a context from files: one for all connections, since each takes 0.8 MB and 0.1 s."""
    context = ssl.create_default_context(cafile=authorities)
    if certificate:
        context.load_cert_chain(certificate, key)
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_options(proxy: str | None, bypassed: str | None) -> dict[str, Any]:
    """Return the options of a web socket for the proxy of a kubeconfig file."""
    address = urlsplit(proxy or "")
    if not address.hostname:
        return {}
    kind = address.scheme.lower()
    if kind == "https":
        raise InputError(
            f"the proxy {address.hostname} speaks TLS, which volbench cannot use to reach pods",
            hint="name a proxy with http:// or socks5:// as proxy-url of the cluster",
        )
    options: dict[str, Any] = {
        "http_proxy_host": address.hostname,
        "http_proxy_port": address.port or 80,
        "http_no_proxy": (bypassed or "").split(","),
        "proxy_type": kind,
    }
    if address.username:
        options["http_proxy_auth"] = unquote(address.username), unquote(address.password or "")
    return options


@contextmanager
def _plugin_errors() -> Iterator[None]:
    """Raise what the client only logs: a credential plugin that failed.

    Without its credentials the client goes on as an anonymous user, whom the server refuses.
    """
    texts: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.module == "kube_config":
                texts.append(record.getMessage())

    collector = Collector(logging.ERROR)
    logging.getLogger().addHandler(collector)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(collector)
    if texts:
        raise AuthError(
            "the credential plugin of the kubeconfig file failed: "
            + "; ".join(text.removeprefix("exec: ") for text in texts),
            hint="log in again with the tool of the cluster's provider; check with: kubectl auth "
            "whoami",
        )


def _message_of(data: bytes) -> str:
    """Return the message of a Status object; other text as it is."""
    text = data.decode("utf-8", "replace").strip()
    try:
        status = json.loads(text)
    except ValueError:
        return text[:500]
    return str(status.get("message", "")) if isinstance(status, Mapping) else text[:500]


def missing_client(error: ImportError) -> InputError:
    """Return the error of an installation without the extra for clusters."""
    return InputError(
        f"clusters need the Python client of Kubernetes: {error}",
        hint=f"install it: {install_command('kubernetes')}",
    )


def open_cluster(*, context: str = "", namespace: str = "") -> Cluster:
    """Connect as kubectl does: by KUBECONFIG, ~/.kube/config or, in a pod, its service account."""
    try:
        from kubernetes import client, config
        from yaml import YAMLError
    except ImportError as error:
        raise missing_client(error) from error
    settings = client.Configuration()
    files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    has_file = any(Path(file).is_file() for file in files.split(os.pathsep))
    try:
        if not has_file and not context and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=settings)
            default = (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
        else:
            contexts, chosen = config.list_kube_config_contexts(files)
            if context:
                chosen = next((known for known in contexts if known["name"] == context), chosen)
            with _plugin_errors():
                config.load_kube_config(files, context or None, settings)
            context, default = chosen["name"], chosen["context"].get("namespace", "")
    except (config.ConfigException, YAMLError, OSError, KeyError, TypeError, UnicodeError) as error:
        raise InputError(
            f"no cluster is configured: {' '.join(str(error).split())}",
            hint="check with: kubectl config get-contexts; name a file in KUBECONFIG",
        ) from error
    return Cluster(
        client.ApiClient(settings), namespace=namespace or default or "default", context=context
    )


@dataclass(frozen=True)
class ClusterAddress:
    """Cluster and namespace, as named on the command line."""

    context: str = ""  # context of the kubeconfig file; empty for the current one
    namespace: str = ""  # empty for that of the context

    @contextmanager
    def opened(self) -> Iterator[Cluster]:
        """Yield the connection to the cluster, closed at the end of the block."""
        cluster = open_cluster(context=self.context, namespace=self.namespace)
        try:
            yield cluster
        finally:
            cluster.close()
