"""Kept shell: one long-lived shell per host that answers requests and pushes state."""
