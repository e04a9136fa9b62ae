"""Executors: what starts programs and looks at files on a machine, local or remote."""
