"""Machines: start processes and look at files, here or elsewhere."""
