"""Tests of the metrics of campaigns."""
