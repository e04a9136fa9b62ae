"""Suite of scripts/torture: random faults, and what must hold after them."""
