"""Suite of fleets: real SSH servers in network namespaces."""
