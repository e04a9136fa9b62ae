"""Tests of the catalogue of prices and volume types."""
