"""Import of results that others measured into a campaign folder."""
