"""volbench k8s: manifests of a profile, access rights, storage classes, and what is submitted."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from tests.command_line import call
from tests.extensions.kubernetes.schemas import NEWEST, problems
from volbench.extensions.kubernetes import controllers, submitted_run
from volbench.extensions.kubernetes.cluster import ClusterAddress
from volbench.plan.bundled_files import bundled_names

IMAGE = ("--pod", "image=registry.example.com/volbench-fio:1")


def documents(*arguments: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as for `call`
    """Return the manifests that a command prints."""
    done = call("k8s", *arguments, **more)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_render_prints_the_objects_of_the_published_article() -> None:
    """The nine tests need a claim of the class, and the node's own disk for the first of them."""
    owner, claim, pod = documents(
        *("render", "aks-disk", "--storage-class", "managed-premium-retain-nocache"),
        *("--claim-size", "250Gi", "--pod", "node-selector=tag=disktest", *IMAGE),
    )
    assert owner["kind"] == "ConfigMap"
    assert claim["spec"]["resources"]["requests"]["storage"] == "250Gi"
    assert claim["spec"]["storageClassName"] == "managed-premium-retain-nocache"
    assert pod["spec"]["nodeSelector"] == {"tag": "disktest"}
    mounts = {mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert {"/volumes/data", "/volumes/os"} <= mounts
    assert not any(problems(each, NEWEST[-1]) for each in (owner, claim, pod))


def test_the_image_can_be_configured(tmp_path: Path) -> None:
    """Without an option the image is that of volbench.toml; without either there is none."""
    (tmp_path / "volbench.toml").write_text(
        '[pod]\nimage = "registry.example.com/fio:2"\nrequest.cpu = 2\n'
    )
    _, pod = documents("render", "quick", "--pod", "os-disk", cwd=tmp_path)
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "registry.example.com/fio:2"
    assert container["resources"] == {"requests": {"cpu": "2"}}
    (tmp_path / "volbench.toml").unlink()
    done = call("k8s", "render", "quick", "--pod", "os-disk", cwd=tmp_path)
    assert done.returncode == 2
    assert "image" in done.stderr


def test_a_role_without_a_volume_is_refused(tmp_path: Path) -> None:
    """Pods have the roles data and os."""
    profile = tmp_path / "p.yaml"
    profile.write_text(
        "name: p\ndefaults: {size: 1m, ioengine: psync}\njobs: {first: {role: log, rw: write}}\n"
    )
    done = call("k8s", "render", profile, "--pod", "os-disk", *IMAGE)
    assert done.returncode == 2
    assert "role log" in done.stderr


def test_the_role_has_no_more_rights_than_campaigns_need() -> None:
    """No wildcard, no secrets, nothing written outside the namespace."""
    found = documents("render", "--role", "volbench", "--namespace", "disktest")
    assert not any(problems(each, NEWEST[-1]) for each in found)
    by_kind = {each["kind"]: each for each in found}
    rules = by_kind["Role"]["rules"] + by_kind["ClusterRole"]["rules"]
    words = {word for rule in rules for words in rule.values() for word in words}
    assert not words & {"*", "secrets", "impersonate", "bind", "escalate"}
    assert {verb for rule in by_kind["ClusterRole"]["rules"] for verb in rule["verbs"]} <= {
        "get",
        "list",
    }
    assert by_kind["RoleBinding"]["subjects"][0]["namespace"] == "disktest"


def test_every_storage_class_is_valid_and_keeps_its_volumes() -> None:
    """Bundled classes are valid, named as their file, and Retain."""
    names = bundled_names("storage-classes")
    for each, name in zip(documents("storageclass", *names), names, strict=True):
        assert each["metadata"]["name"] == name
        assert each["reclaimPolicy"] == "Retain"
        assert [found for version in NEWEST for found in problems(each, version)] == []
        assert all(isinstance(value, str) for value in each["parameters"].values())


def test_an_image_is_tried_in_a_pod_like_those_of_campaigns() -> None:
    """The pod is valid, has no privileges, and says in its log whether fio and Python work."""
    (pod,) = documents("render", *IMAGE, "--namespace", "disktest")
    assert [found for version in NEWEST for found in problems(pod, version)] == []
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "the image serves" in container["command"][-1]
    assert pod["spec"]["volumes"][-1] == {"name": "os", "emptyDir": {}}


SUBMIT = ("k8s", "submit", "--controller-image", "registry.example.com/volbench:1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--claim-size", "1Gi"), "no such option"),
        (("quick", "--claim-size", "1Gi", "-o", "out"), "-o/--output cannot be used"),
        (("quick", "--on", "/data"), "--on cannot be used"),
        (("quick", "--metrics", "0"), "--metrics 0 cannot be used"),
        (("quick", "--claim-size", "1Gi", "aks-disk"), "profiles must come before"),
        (("quick", "--zzz"), "see volbench run --help"),
        (("no-such-profile",), "no-such-profile"),
        (("quick", "--set", "http_pass=abcdef"), "contains a password"),
    ],
)
def test_arguments_are_checked(arguments: tuple[str, ...], words: str) -> None:
    """Otherwise a Job would be made whose volbench fails at once."""
    done = call(*SUBMIT, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "abcdef" not in done.stderr


def test_a_profile_with_a_password_is_refused(tmp_path: Path) -> None:
    """Whoever may read ConfigMaps could read it."""
    profile = tmp_path / "p.yaml"
    profile.write_text(
        "name: p\nvolumes: {data: 'nbd://me:abcdef@host/disk'}\njobs:\n  a: {rw: read, size: 1m}\n"
    )
    done = call(*SUBMIT, profile, "--claim-size", "1Gi")
    assert done.returncode == 2
    assert "the profile p contains a password" in done.stderr
    assert "abcdef" not in done.stderr


def test_configured_settings_of_pods_are_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster does not have volbench.toml; an option on the command line goes before."""
    (tmp_path / "volbench.toml").write_text('[pod]\nimage = "fio:1"\nrequest.cpu = 2\n')
    monkeypatch.chdir(tmp_path)
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(submitted_run, "check_run", lambda *_, **__: None)
    monkeypatch.setattr(
        controllers, "submit_controller", lambda _, spec: found.append(dict(vars(spec)))
    )
    monkeypatch.setattr(ClusterAddress, "opened", lambda _: nullcontext(Mock(namespace="n")))
    call(
        *SUBMIT, "quick", "--claim-size", "1Gi", "--pod", "run-as-user=7", "--pod", "request.cpu=4"
    )
    (spec,) = found
    assert spec["arguments"][-1] == "--pod=image=fio:1"
    assert "--pod=request.cpu=2" not in spec["arguments"]
    assert spec["run_as_user"] == 7
