"""YAML documents as pydantic models: loading with located errors, dumping, JSON Schema, tables."""
