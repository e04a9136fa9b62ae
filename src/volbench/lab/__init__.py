"""Simulated volumes whose truth is known: served by nbdkit, or run in virtual time."""
