"""Frames for other programs: CSV, workbooks, markup."""
