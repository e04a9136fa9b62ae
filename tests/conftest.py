"""Rules for every test: no leaks, markers by folder, and `root` needs root and loop devices."""

import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.command_line import call
from tests.extensions.kubernetes.local_cluster import LocalCluster, missing_cluster, running_cluster
from tests.schedule import ModuleScheduling, sort_for_workers

_PYTEST_OWN = {"PYTEST_CURRENT_TEST"}
_MARKED_FOLDERS = {"browser", "fleet"}
"""Folders below tests/ whose tests have the marker of the same name."""


def pytest_configure() -> None:
    """Let children receive Ctrl-C, which a shell that starts tests in the background ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what is collected: it stays, and is walked through in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sign campaigns with a key of the tests' own, and cache results in a folder of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Hand out a real Kubernetes cluster, started once for all tests."""
    if os.geteuid():
        pytest.skip("a cluster needs root")
    if reason := missing_cluster():
        pytest.skip(reason)
    with running_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def volbench(tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """Return a function that calls volbench in a temporary folder and captures what it prints."""
    return partial(call, cwd=tmp_path)


@pytest.fixture
def hangup_is_default() -> Iterator[None]:
    """Handle SIGHUP as by default, also where the tests themselves were started with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a folder to measure."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that `scripts/test` leaves out, before ``-m`` selects."""
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    if folder in _MARKED_FOLDERS:
        item.add_marker(folder)
    if "cluster" in getattr(item, "fixturenames", ()):
        item.add_marker("kubernetes")


@pytest.hookimpl(trylast=True)  # after pytest-randomly has shuffled them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests for workers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        sort_for_workers(items)


@pytest.hookimpl(optionalhook=True)  # there may be no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ModuleScheduling | None:
    """Deal whole modules to the workers under ``--dist loadscope``."""
    return ModuleScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _PYTEST_OWN}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that makes devices where that is not possible."""
    needed = Path("/dev/loop-control"), Path("/sys/dev/block")
    possible = os.geteuid() == 0 and all(path.exists() for path in needed)
    if item.get_closest_marker("root") and not possible:
        pytest.skip("needs root and loop devices")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail a test that leaves another environment or working directory behind."""
    environment, folder = _environment(), Path.cwd()
    yield
    leaks = []
    left, left_folder = _environment(), Path.cwd()
    if left_folder != folder:
        os.chdir(folder)
        leaks.append(f"working directory {left_folder}")
    leaks.extend(
        f"{name}={left.get(name)!r}, was {environment.get(name)!r}"
        for name in sorted(environment.keys() | left.keys())
        if environment.get(name) != left.get(name)
    )
    if leaks:
        for name in left.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        pytest.fail("the test leaked: " + "; ".join(leaks))
