"""Levels on simulated volumes: profile, fio, frames and verdict against the truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.proof import Workload, made, measure, needs_nbdkit

pytestmark = needs_nbdkit

DECLARED = "limits: {iops: 1100, bandwidth: 125MB/s}"


def test_clean_volume_is_not_doubted(tmp_path: Path) -> None:
    """On an even volume nothing but notes is found, and it is steady."""
    proof = measure("clean", tmp_path, Workload("randwrite", runtime_s=20))
    assert proof.verdict["verdict"] == "steady"
    assert proof.verdict["bound_by"] == "latency"
    assert proof.iops == pytest.approx(proof.truth.iops, rel=0.03)
    assert proof.doubts() == []


def test_one_small_write_is_bound_by_latency(tmp_path: Path) -> None:
    """Test 3 of the article: about 400 IOPS, nothing is full."""
    proof = measure("p15", tmp_path, Workload("write", iodepth=1), more=DECLARED)
    assert proof.iops == pytest.approx(400, rel=0.03)
    assert proof.verdict["bound_by"] == proof.truth.bound_by == "latency"


@pytest.mark.parametrize("limits", [DECLARED, ""], ids=["declared", "inferred"])
def test_sixteen_small_writes_are_capped_in_iops(tmp_path: Path, limits: str) -> None:
    """Test 4 of the article: 1,100 IOPS, the cap, whether it was declared or not."""
    proof = measure("p15", tmp_path, Workload("write", iodepth=16), more=limits)
    assert proof.verdict["bound_at"] == pytest.approx(1100, rel=0.03)
    assert proof.verdict["bound_by"] == proof.truth.bound_by == "iops-cap"
    assert proof.verdict["verdict"] == "steady"


def test_one_large_write_is_bound_by_latency(tmp_path: Path) -> None:
    """Test 5 of the article: about 200 IOPS of 128 KiB."""
    proof = measure("p15", tmp_path, Workload("write", bs="128k", iodepth=1), more=DECLARED)
    assert proof.iops == pytest.approx(200, rel=0.03)
    assert proof.verdict["bound_by"] == "latency"


@pytest.mark.parametrize("limits", [DECLARED, ""], ids=["declared", "inferred"])
def test_large_writes_are_capped_in_bandwidth(tmp_path: Path, limits: str) -> None:
    """125 MB/s bind before 1,100 IOPS do."""
    proof = measure("p15", tmp_path, Workload("write", bs="256k"), more=limits)
    assert proof.verdict["bound_at"] == pytest.approx(125e6, rel=0.03)
    assert proof.verdict["bound_by"] == proof.truth.bound_by == "bandwidth-cap"


def test_caps_nobody_tuned_for(tmp_path: Path) -> None:
    """Another size, latency and cap come out as well."""
    scenario = made(
        "name: other\nsize: 24m\nrestored: true\n"
        "service: {read: {latency: 1.2ms, sigma: 0.2}, write: {latency: 1.2ms, sigma: 0.2}}\n"
        "caps: {iops: 2730, bandwidth: 60MB/s}\n"
    )
    proof = measure(scenario, tmp_path, Workload("randread", iodepth=12))
    assert proof.verdict["bound_at"] == pytest.approx(2730, rel=0.03)
    assert proof.verdict["bound_by"] == "iops-cap"
    assert proof.doubts() == []
