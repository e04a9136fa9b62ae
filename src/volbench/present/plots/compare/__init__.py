"""Charts of comparisons and prices."""
