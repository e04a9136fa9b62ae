"""Parsers of fio's results: JSON output, latency bins, status lines, validation."""
