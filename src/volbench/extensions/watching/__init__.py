"""Watched loads: disks of hosts under a load that volbench does not make itself."""
