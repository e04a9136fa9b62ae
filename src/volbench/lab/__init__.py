"""Simulated volumes whose truth is known, served by nbdkit."""
