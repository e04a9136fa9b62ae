"""One run: command, watch, stop, run directory, live latency."""
