"""Profiles: loading, dumping, overrides, JSON Schema."""
