"""Tests of `volbench.plan.volumetypes`."""
