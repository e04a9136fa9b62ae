"""Compressed parts of the report's page, which it decodes on demand."""
