"""Renderers of plot descriptions: matplotlib for files, and one that draws in the page."""
