"""Kinds of charts that show how a run develops, or repeats develop from round to round."""
