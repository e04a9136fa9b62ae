"""The campaign folder: layout, atomic writes, journal, tables."""
