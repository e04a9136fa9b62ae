"""fio's logs: streams of rows, sums by window, points of a series."""
