"""Verbs that run something: run, warmup, resume, reap, probe, lab."""
