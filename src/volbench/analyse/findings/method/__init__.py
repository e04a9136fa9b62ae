"""Rules on the way a run was set up and how it went."""
