"""Measurements: results, findings, provenance."""
