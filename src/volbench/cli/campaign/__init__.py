"""Verbs on a campaign that exists: attach, forget, reap, resume, status."""
