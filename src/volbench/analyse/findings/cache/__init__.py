"""Rules on caches, memory and data that is not really read or written."""
