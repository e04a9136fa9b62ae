"""Campaign of hosts with labels, made without running fio."""

from pathlib import Path

from tests.finished_campaign import finish
from tests.planned import a_folder, planned_campaign, planned_run
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Section
from volbench.store.archive import Archive, Provenance, create_campaign
from volbench.store.layout import Layout

CASES = Path(__file__).parent / "cases"
HOSTS = (
    Host(name="vm1", labels={"provider": "azure", "volume_type": "P15"}),
    Host(name="vm2", labels={"provider": "azure", "zone": "1"}),
    Host(name="vm3"),
)


def make(root: Path, hosts: tuple[Host, ...], *, finished: bool = True) -> Layout:
    """Return a campaign with a run on each host, two clients on the first."""
    section = Section(name="mix", options={"rw": "randrw"})
    places = [(hosts[0].name, 1), (hosts[0].name, 2), *((host.name, 0) for host in hosts[1:])]
    runs = []
    for number, (name, client) in enumerate(places, start=1):
        names = {"id": f"{number:03}-mix-r1", "job": "mix", "host": name}
        runs.append(planned_run(a_folder(), section, client=client, sample_s=0, **names))
    campaign = planned_campaign(*runs, hosts=hosts)
    provenance = Provenance(volbench_version="0", python_version="3")
    layout = create_campaign(root / "c", Archive(campaign=campaign, provenance=provenance))
    for run in runs if finished else ():
        finish(layout, run.id)
    return layout
