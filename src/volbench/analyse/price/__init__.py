"""Price and performance: billing, ranking, Pareto frontier."""
