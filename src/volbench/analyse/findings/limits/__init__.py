"""Rules on limits of the volume, the host and other users of them."""
