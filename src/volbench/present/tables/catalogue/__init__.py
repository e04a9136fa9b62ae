"""Tables of catalogues: volume types, prices and scenarios."""
