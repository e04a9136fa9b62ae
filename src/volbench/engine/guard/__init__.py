"""Checks before a run that nothing is overwritten without consent, and that the run can work."""
