"""Object storage: listing and reading, temporary copies of campaigns, files of datasets."""
