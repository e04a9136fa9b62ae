"""Kinds of charts that show one value for each job: rates, latencies, sweeps, CPU."""
