"""Rules on missing or damaged evidence."""
