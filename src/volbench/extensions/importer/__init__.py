"""Import of results measured by other tools into a campaign folder."""
