"""Verbs on files: profiles, inventories, prices, volume types."""
