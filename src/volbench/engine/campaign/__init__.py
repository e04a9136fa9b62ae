"""The campaign engine: order, clients, barrier, run states, resume, cleanup."""
