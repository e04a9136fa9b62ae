"""Comparison of repeats: statistics, comparability, verdicts."""
