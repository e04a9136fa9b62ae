"""Sampling during a run: kernel counters, clock offset, write-back after the run."""
