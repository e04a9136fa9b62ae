"""Machines that are reached by SSH: a channel for each, over pooled connections.

Nothing is imported here, so that the SSH library is loaded only by those who connect.
"""
