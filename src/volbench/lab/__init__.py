"""Simulated volumes whose truth is known: a scenario enters, a served volume leaves."""
