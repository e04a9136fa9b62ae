"""Everything that knows fio and dd: text in, text out, no processes."""
