"""Hosts: facts, survey, fio installation, block devices, locks, orphans."""
