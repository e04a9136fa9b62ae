"""Catalogue: prices, volume types, machine types and storage classes."""
