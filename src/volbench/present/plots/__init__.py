"""Charts as data: every kind of chart turns frames into a description that any renderer draws."""
