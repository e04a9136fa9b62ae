"""Bottlenecks of runs and causes of rate changes, with their evidence."""
