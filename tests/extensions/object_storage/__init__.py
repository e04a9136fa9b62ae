"""Tests of object storage, upload and SQL over many campaigns."""
