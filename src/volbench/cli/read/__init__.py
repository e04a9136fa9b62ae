"""Verbs that read campaigns: show, check, compare, plot, report, export, sql, import."""
