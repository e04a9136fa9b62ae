"""Column contract: columns, aliases, metrics and facts."""
