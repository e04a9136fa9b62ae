"""Planning: profiles, inventories, prices and volume types, expansion, estimates."""
