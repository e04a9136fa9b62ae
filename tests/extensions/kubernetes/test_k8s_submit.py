"""What cannot be submitted is refused before a cluster is asked."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.command_line import call
from volbench.extensions.kubernetes import controllers, submitted_run
from volbench.extensions.kubernetes.cluster import ClusterAddress

SUBMIT = ("k8s", "submit", "--controller-image", "registry.example.com/volbench:1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "1Gi"), "no such option"),
        (("quick", "--size", "1Gi", "-o", "out"), "-o/--output cannot be used"),
        (("quick", "--on", "/data"), "--on cannot be used"),
        (("quick", "--metrics", "0"), "--metrics 0 cannot be used"),
        (("quick", "--size", "1Gi", "aks-disk"), "profiles must come before"),
        (("quick", "--no-such-option"), "see volbench run --help"),
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
    done = call(*SUBMIT, profile, "--size", "1Gi")
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
    call(*SUBMIT, "quick", "--size", "1Gi", "--pod", "run-as-user=7", "--pod", "request.cpu=4")
    (spec,) = found
    assert spec["arguments"][-1] == "--pod=image=fio:1"
    assert "--pod=request.cpu=2" not in spec["arguments"]
    assert spec["run_as_user"] == 7
