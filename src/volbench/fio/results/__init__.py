"""Results: fio's JSON, latency bins, status lines, validation."""
