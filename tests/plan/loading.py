"""Profiles from text, for the tests of plans."""

from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.profile_model import Profile
from volbench.plan.profile.load_profile import load_profile

TABLE = shipped_table()


def load(text: str, *settings: str, allow_exec: bool = False) -> Profile:
    """Load a profile against the shipped table, with settings."""
    return load_profile(text, path="p.yaml", table=TABLE, settings=settings, allow_exec=allow_exec)
