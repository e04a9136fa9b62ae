"""What was measured: results, findings, provenance."""
