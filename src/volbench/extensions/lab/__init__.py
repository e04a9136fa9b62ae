"""Simulated volumes with known behaviour, served by nbdkit."""
