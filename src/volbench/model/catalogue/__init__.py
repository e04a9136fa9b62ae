"""Prices and volume types."""
