"""SSH transport: a channel per host, over pooled connections.

This package imports nothing, so that paramiko is loaded only for remote hosts.
"""
