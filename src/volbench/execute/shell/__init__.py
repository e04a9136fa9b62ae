"""Executor over a channel: all that a machine must do, given a way to run a command there.

A new kind of machine is a new `channel.Channel`; `shell_executor.ShellExecutor` does the rest by a
POSIX shell and the usual small tools.
"""
