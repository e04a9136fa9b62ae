"""Images of the Containerfiles, built where there is a builder, and run on a real cluster."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.conftest import Desk, credentials
from tests.extensions.kubernetes.followed_controllers import (
    ENDED,
    PATIENCE_S,
    log_of,
    reach_the_api,
    status,
)
from tests.extensions.kubernetes.local_cluster import CACHE, ROOT, LocalCluster
from tests.waiting import until
from volbench.api.one_campaign import campaign_data
from volbench.extensions.kubernetes import controllers
from volbench.extensions.kubernetes.cluster import Manifest
from volbench.extensions.kubernetes.controllers import ControllerSpec, controller_objects

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # a build takes minutes
    pytest.mark.usefixtures("account"),
]
MAX_BYTES = {"pods": 120e6, "controller": 450e6}


def name_of(target: str) -> str:
    """Return the name of an image of the tests."""
    return f"localhost/volbench-{target}:test"


def build(target: str, *options: str) -> None:
    """Build an image on a base of Debian's packages, and try it as its user."""
    if missing := [own for own in ("buildah", "mmdebstrap") if shutil.which(own) is None]:
        pytest.skip(f"images are not built: apt-get install {' '.join(missing)}")
    command = ["scripts/build-image", "--debian", "trixie", "--target", target, *options]
    env = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [*command, name_of(target)], cwd=ROOT, env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "works as user 65532" in done.stdout


@pytest.fixture(name="images")
def _images(cluster: LocalCluster, tmp_path: Path) -> None:
    place = subprocess.check_output(
        [ROOT / "scripts" / "cluster-build", "--where"], env=os.environ | CACHE, text=True
    )
    socket = cluster.state / "run" / "containerd.sock"
    for target, most in MAX_BYTES.items():
        archive = tmp_path / f"{target}.tar"
        build(target, "--archive", str(archive))
        assert archive.stat().st_size < most
        ctr = [f"{place.strip()}/usr/bin/ctr", "--address", str(socket), "--namespace", "k8s.io"]
        subprocess.run([*ctr, "images", "import", archive], check=True, capture_output=True)
        archive.unlink()


@pytest.mark.usefixtures("images")
def test_a_campaign_needs_only_the_two_images(
    desk: Desk, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller of its image runs fio in pods of the other image, which are not root.

    Whoever submits, follows and fetches it has only the rights of the shipped role.
    """

    def objects(spec: ControllerSpec, *, owner_uid: str = "") -> list[Manifest]:
        *others, last = controller_objects(spec, owner_uid=owner_uid)
        reach_the_api(last, desk.cluster.port)
        return [*others, last]

    monkeypatch.setattr(controllers, "controller_objects", objects)
    monkeypatch.setenv("KUBECONFIG", str(credentials(desk, "volbench")))
    never = ("--pod", "image-pull-policy=Never")
    place = ("--namespace", desk.api.namespace)
    # Volumes of the test cluster belong to root, whatever the group of the pod.
    own = ("--controller-image", name_of("controller"))
    options = ("--pod", "run-as-user=0", "--metrics", "9400")
    run = (str(job), "--pod", "os-disk", "--pod", f"image={name_of('pods')}", *never, *options)
    done = call("k8s", "submit", *place, *own, "--folder-class", "fast", *run)
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    until(lambda: status(desk, name)["state"] in ENDED, patience_s=PATIENCE_S)
    assert status(desk, name)["state"] == "finished", log_of(desk.api, name)
    assert "metrics: http://0.0.0.0:9400/metrics" in log_of(desk.api, name)
    fetched = call("k8s", "fetch", name, *place, "--remove", "-o", "back", cwd=desk.folder)
    assert fetched.returncode == 0, fetched.stderr
    campaign = campaign_data(desk.folder / "back")
    assert list(campaign.summary()["status"]) == ["finished"]
    assert set(campaign.frame("device")["run"]) == set(campaign.summary()["run"])
    until(lambda: desk.left() == [])


def test_the_demo_is_complete() -> None:
    """Its image has all that the demo calls: volbench, fio and nbdkit with Python."""
    build("demo")
