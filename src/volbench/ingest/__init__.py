"""From raw files to the rows of every frame."""
