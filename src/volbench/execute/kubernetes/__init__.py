"""Machines of a Kubernetes cluster: objects of a campaign, and the channel to its pods."""
