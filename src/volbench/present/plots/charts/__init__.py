"""Kinds of charts, a module for those that share data or form."""
