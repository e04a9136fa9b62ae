"""Tests of `volbench.plan.volume_types`."""
