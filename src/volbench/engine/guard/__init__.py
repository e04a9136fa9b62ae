"""The guard: what may be overwritten, and checks before anything is started."""
