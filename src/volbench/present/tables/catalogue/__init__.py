"""Tables of what can be chosen from: profiles, volume types and prices."""
