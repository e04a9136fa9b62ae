"""Tests of `volbench.catalogue.bundled_volume_types`."""
