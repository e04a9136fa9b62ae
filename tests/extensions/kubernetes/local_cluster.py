"""A real cluster on this machine, of one or two nodes: started, disturbed, stopped by tests."""

import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.extensions.kubernetes.image import write_image

ROOT = Path(__file__).parents[3]
_ANSWER_S = 300.0  # longer than its own waits: it starts in 10 s, in 30 s on a busy machine
_BUILD_S = 3000.0  # longer than a build on one core
_PORTS = 4
# Where the cluster was built, whatever cache a test gives to volbench
CACHE = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", "")}
NODE, SECOND_NODE = "127.0.0.1", "127.0.0.2"


class LocalCluster:
    """A running cluster, whose API server is at a port of 127.0.0.1."""

    def __init__(self, state: Path, port: int, program: subprocess.Popen[str]) -> None:
        self.state = state
        self.kubeconfig = state / "kubeconfig"
        self.port = port
        self._program = program
        self._has_joined = False
        self._has_driver = False

    @property
    def group(self) -> str:
        """Control group of the pods of its first node."""
        return f"volbench-{self.port}"

    def stop(self, component: str) -> None:
        """Kill a component, such as ``kubelet``."""
        self._command(f"stop {component}")

    def start(self, component: str) -> None:
        """Start a component again."""
        self._command(f"start {component}")

    def join(self) -> None:
        """Add the node `SECOND_NODE`, which stays; its components are kubelet-2, containerd-2."""
        if not self._has_joined:
            self._has_joined = True
            self._command("join 2")

    def add_driver(self) -> None:
        """Start the CSI driver loop.csi.volbench.io of the first node, and its sidecars."""
        if not self._has_driver:
            self._has_driver = True
            self._command("add csi")

    def wait_until_ready(self) -> None:
        """Wait for the node; fail with the logs if the cluster does not start."""
        self._expect("ready")

    def _command(self, text: str) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(f"{text}\n")
        self._program.stdin.flush()
        self._expect(f"{text}: done")

    def _expect(self, line: str) -> None:
        assert self._program.stdout is not None
        ready, _, _ = select.select([self._program.stdout], [], [], _ANSWER_S)
        answer = self._program.stdout.readline().strip() if ready else "nothing"
        if answer != line:
            logs = [f"{log.name}: {log.read_text()[-500:]}" for log in self.state.glob("log/*")]
            pytest.fail(f"the cluster answers {answer!r}, not {line!r}\n" + "\n".join(logs))


def missing_cluster() -> str:
    """Return why there is no cluster to start; empty if there is one.

    On a build server its build is awaited, and its absence is an error.
    """
    wanted = [] if os.environ.get("CI") else ["--where"]
    done = subprocess.run(
        [str(ROOT / "scripts" / "cluster-build"), *wanted],
        check=bool(os.environ.get("CI")),
        env=os.environ | CACHE,
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
    )
    return done.stderr.strip() if done.returncode else ""


@contextmanager
def running_cluster(state: Path) -> Iterator[LocalCluster]:
    """Yield a cluster with the image `image.NAME`; it ends with all of its processes."""
    state.mkdir(parents=True, exist_ok=True)
    image = state / "image.tar"
    write_image(image)
    port = _free_ports()
    argv = [str(ROOT / "scripts" / "cluster-start"), str(state), str(port), str(image)]
    with (
        (state / "messages").open("w") as messages,
        subprocess.Popen(
            argv,
            env=os.environ | CACHE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
            start_new_session=True,
        ) as program,
    ):
        cluster = LocalCluster(state, port, program)
        try:
            cluster.wait_until_ready()
            yield cluster
        finally:
            assert program.stdin is not None
            with suppress(BrokenPipeError):
                program.stdin.close()
            try:
                program.wait(_ANSWER_S)
            except subprocess.TimeoutExpired:  # it waits for a component, not for its input
                os.killpg(program.pid, signal.SIGKILL)


def _free_ports() -> int:
    for first in range(16_400 + os.getpid() % 500 * _PORTS, 32_000, _PORTS):
        with suppress(OSError):
            for port in range(first, first + _PORTS):
                with socket.create_server(("127.0.0.1", port)):
                    pass
            return first
    pytest.fail("no free ports")
