"""Campaign plan and execution events: runs, targets, hosts, events."""
