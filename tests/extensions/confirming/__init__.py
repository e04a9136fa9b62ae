"""Tests of the extension confirming."""
