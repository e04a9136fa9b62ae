"""Profiles, jobs and fio options."""
