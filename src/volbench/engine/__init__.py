"""Execution of campaigns: hosts, guard, conditioning, sampling, single runs, whole campaigns."""
