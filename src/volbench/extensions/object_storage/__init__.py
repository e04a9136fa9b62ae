"""Object storage: campaigns in buckets, and queries over many of them."""
