"""Kinds of charts that show how latency or IOPS is distributed."""
