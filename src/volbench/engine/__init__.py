"""Runs and campaigns: probe, guard, one Run, all Runs, ingest."""
