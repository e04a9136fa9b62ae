"""What is planned and what happens: runs, targets, hosts, events."""
