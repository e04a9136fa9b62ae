"""The column contract: columns, their aliases, metrics and facts."""
