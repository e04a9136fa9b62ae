"""Progress and messages on a terminal."""
