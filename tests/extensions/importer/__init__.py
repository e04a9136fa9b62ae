"""Importing results that others measured."""
