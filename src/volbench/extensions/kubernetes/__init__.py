"""Kubernetes: campaigns on pods, and the verbs that manage them."""
