"""Analysis over time: change points, steady state, SNIA rounds, warm-up, boot storms."""
