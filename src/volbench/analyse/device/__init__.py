"""Devices: kernel counters, rates, utilization, saturation and errors."""
