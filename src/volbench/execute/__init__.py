"""Executors: program execution and file access on a local or remote host."""
