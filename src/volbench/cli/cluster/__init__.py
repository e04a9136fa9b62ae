"""Verbs on Kubernetes clusters."""
