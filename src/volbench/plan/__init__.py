"""From YAML to a plan: load, expand, estimate."""
