"""Views of frames: runs, their facts, filters and aggregates."""
