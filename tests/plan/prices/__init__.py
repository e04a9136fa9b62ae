"""Tests of `volbench.plan.prices`."""
