"""Samples beside a run: kernel counters, clock offset, write-back afterwards."""
