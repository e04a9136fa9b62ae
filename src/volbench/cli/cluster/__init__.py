"""Verbs on Kubernetes clusters: manifests, access rights, storage classes."""
