"""Executor over a channel, for any host that can run commands in a POSIX shell.

To support a new transport, implement `channel.Channel`; `shell_executor.ShellExecutor` provides
everything else by shell scripts.
"""
