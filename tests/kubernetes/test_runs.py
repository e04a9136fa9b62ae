"""Campaigns in pods of a real cluster."""

from __future__ import annotations

from tests.kubernetes.conftest import SHORT, Desk


def test_the_nine_tests_of_the_article(desk: Desk) -> None:
    """One command runs the nine jobs on a volume of a class and on the node's own disk."""
    done = desk.run("c", "aks-disk", "--storage-class", "fast", *SHORT)
    assert done.returncode == 0, done.stderr
    print(done.stdout, done.stderr)
