"""Job files: rendering, parsing, and the option table."""
