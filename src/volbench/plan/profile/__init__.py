"""Profiles: loading, dumping, overriding, their schema."""
