"""Inventories: host lists in all supported formats, and selection by ``--limit``."""
