"""Frames in, answers out."""
