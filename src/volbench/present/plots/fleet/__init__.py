"""Kinds of charts that show many hosts or clients together."""
