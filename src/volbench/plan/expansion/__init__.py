"""From profiles to an ordered campaign: expansion, extents, estimate."""
