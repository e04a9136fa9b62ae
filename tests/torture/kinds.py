"""Kinds of torture, with their share of the time and the least number of cases of the long form."""

from tests.torture.faulty_fleets import fleet_fault, fleet_kill
from tests.torture.full_disks import full_disk
from tests.torture.guard_situations import guard_situation
from tests.torture.kept_files import attached_anew, kept_file
from tests.torture.killed_campaigns import controller_kill
from tests.torture.neighbours import neighbour_case
from tests.torture.neighbours_on_hosts import host_neighbour_case
from tests.torture.parsers import parser_case
from tests.torture.random_profiles import random_profile
from tests.torture.runner import Kind
from tests.torture.stored_files import damaged_file

KINDS = (
    Kind("guard", guard_situation, share=2, least=1000),
    Kind("kills", controller_kill, share=4, least=200),
    Kind("files", kept_file, share=4, least=200),
    Kind("loops", attached_anew, share=1, least=50),
    Kind("full", full_disk, share=2, least=50),
    Kind("profiles", random_profile, share=1, least=50),
    Kind("parsers", parser_case, share=2, least=500),
    Kind("damage", damaged_file, share=2, least=200),
)

NEIGHBOUR_KINDS = (
    Kind("neighbours", neighbour_case, least=50),
    Kind("agents", host_neighbour_case, least=50),
)
"""Beside another user who plants links, folders and pipes, on the machine of volbench and on a host
with an sshd, with and without sudo; a case takes ten seconds."""

FLEET_KINDS = (Kind("fleet-kills", fleet_kill, least=50), Kind("faults", fleet_fault, least=50))
"""On hosts in network namespaces with an sshd each: a minute for a case on a busy machine."""
