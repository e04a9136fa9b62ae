"""Machines that are reached by SSH: from a host of an inventory to an executor.

`pool.open_pool` takes hosts and hands out connections, `executor.SshExecutor` is one machine.
Nothing is imported here, so that the SSH library is loaded only by those who connect.
"""
