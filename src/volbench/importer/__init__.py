"""Results that others measured: files go in, a campaign folder like any other comes out."""
