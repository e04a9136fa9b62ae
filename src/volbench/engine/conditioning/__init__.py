"""Conditioning of a volume: warm-up, cold probe, idle time, flush."""
