"""What a watch learns of a machine beside the counters of its disks."""
