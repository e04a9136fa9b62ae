"""Tests of `volbench.catalogue.bundled_prices`."""
