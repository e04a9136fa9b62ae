"""The device's side: kernel counters, rates, utilization, saturation and errors."""
