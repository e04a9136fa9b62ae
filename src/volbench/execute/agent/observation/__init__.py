"""Observation of a machine beside the counters of its disks."""
