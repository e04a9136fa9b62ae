"""Pods of a campaign on a Kubernetes cluster: created, verified, found again and removed."""
