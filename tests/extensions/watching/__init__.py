"""Watched loads."""
