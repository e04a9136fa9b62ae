"""Parsers of fio's logs: rows, sums by window, time series, latency histograms."""
