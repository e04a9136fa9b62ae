"""Everything that knows fio: text in, text out, no processes."""
