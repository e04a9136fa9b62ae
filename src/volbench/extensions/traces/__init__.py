"""Traces: every I/O of a load, recorded from the kernel or imported, in one Parquet file."""
