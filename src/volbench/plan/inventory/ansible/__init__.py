"""Ansible inventories, read through ``ansible-inventory --list``."""
