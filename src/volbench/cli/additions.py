"""Options that extensions add to verbs of the core, and what these options do for a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from volbench.cli.options import ListenersOf, OptionGroup, option_group
from volbench.extension import extensions, load

if TYPE_CHECKING:
    from pathlib import Path

    from volbench.cli.output import TableOutput
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.event import Listener
    from volbench.model.campaign.host import Host
    from volbench.model.campaign.planned_run import Campaign
    from volbench.store.layout import Layout


class Placement(Protocol):
    """Hosts that are made for a new campaign."""

    @property
    def has_directories(self) -> bool:
        """Whether the volumes of the hosts are directories, not devices."""

    def hosts(
        self, request: CampaignRequest, *, yes: bool, stays: bool
    ) -> AbstractContextManager[tuple[CampaignRequest, list[ConnectedHost]]]:
        """Make hosts; yield the campaign on them, and the hosts, which are removed at the end.

        All that may be refused or asked is settled before they are made.

        Args:
            yes: whether a long campaign is agreed to.
            stays: whether the hosts stay, as the campaign goes on in the background.
        """

    def show_plan(self, request: CampaignRequest, table_output: TableOutput) -> None:
        """Print the plan of a campaign without making its hosts."""


class Addition:
    """Effects of an extension's options on a verb; without a subclass they have none."""

    @property
    def placement(self) -> Placement | None:
        """Hosts to make for a new campaign; None where the options ask for none."""
        return None

    def kept(self) -> dict[str, Any]:
        """Return what a controller in the background needs of the options, as JSON."""
        return {}

    def again(self, kept: Mapping[str, Any]) -> Self:
        """Return this addition with the values of `kept`, in a controller in the background."""
        del kept
        return self

    def served(self) -> AbstractContextManager[ListenersOf]:
        """Serve a campaign inside the block; yield what returns the listeners of its folder."""
        return nullcontext(lambda _layout: [])

    def confirmed(self, result: Any, *asked: Any) -> Any:  # noqa: ANN401 - as it was given
        """Return trends or a comparison of campaigns, by a question, with what explains them."""
        del asked
        return result

    def judged(self, layout: Layout, *start: Any) -> None:  # noqa: ANN401 - of higher modules
        """Judge a campaign that has ended.

        Args:
            start: its `StartOptions`, the policy for keys of hosts, and how tables are printed.
        """

    def concluded(self, layout: Layout, campaign: Campaign, table_output: TableOutput) -> bool:
        """End a campaign instead of resuming it, and print its results; return whether it did."""
        del layout, campaign, table_output
        return False

    def revived(self, hosts: Sequence[Host], root: Path) -> AbstractContextManager[Sequence[Host]]:
        """Find hosts again, or make them again; they are removed at the end of the campaign."""
        del root
        return nullcontext(hosts)

    def removed(
        self, hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
    ) -> AbstractContextManager[Sequence[Host]]:
        """Yield the hosts that are still there, and then remove all that were made.

        Args:
            planned: all hosts of the campaign; none to leave the made ones there.
        """
        del root, planned
        return nullcontext(hosts)


@dataclass(frozen=True)
class Additions(Addition):
    """Additions of all extensions to a verb."""

    parts: Mapping[str, Addition]  # by the keyword of their options

    @property
    def placement(self) -> Placement | None:
        """Hosts to make for a new campaign."""
        placements = (part.placement for part in self.parts.values())
        return next((placement for placement in placements if placement is not None), None)

    def kept(self) -> dict[str, Any]:
        """Return what a controller in the background needs of the options."""
        return {keyword: part.kept() for keyword, part in self.parts.items()}

    def again(self, kept: Mapping[str, Any]) -> Additions:
        """Return the additions with the values of `kept`."""
        return Additions(
            {keyword: part.again(kept.get(keyword, {})) for keyword, part in self.parts.items()}
        )

    @contextmanager
    def served(self) -> Iterator[ListenersOf]:
        """Serve a campaign inside the block."""
        with ExitStack() as stack:
            served = [stack.enter_context(part.served()) for part in self.parts.values()]

            def listeners_of(layout: Layout) -> list[Listener]:
                return [listener for of_part in served for listener in of_part(layout)]

            yield listeners_of

    def confirmed(self, result: Any, *asked: Any) -> Any:  # noqa: ANN401 - as above
        """Return a result with what extensions know of it."""
        for part in self.parts.values():
            result = part.confirmed(result, *asked)
        return result

    def judged(self, layout: Layout, *start: Any) -> None:  # noqa: ANN401 - as above
        """Judge a campaign that has ended."""
        for part in self.parts.values():
            part.judged(layout, *start)

    def concluded(self, layout: Layout, campaign: Campaign, table_output: TableOutput) -> bool:
        """End a campaign instead of resuming it, where an extension does so."""
        parts = self.parts.values()
        return any(part.concluded(layout, campaign, table_output) for part in parts)

    @contextmanager
    def revived(self, hosts: Sequence[Host], root: Path) -> Iterator[Sequence[Host]]:
        """Find hosts again, or make them again."""
        with ExitStack() as stack:
            for part in self.parts.values():
                hosts = stack.enter_context(part.revived(hosts, root))
            yield hosts

    @contextmanager
    def removed(
        self, hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
    ) -> Iterator[Sequence[Host]]:
        """Yield the hosts that are still there, and then remove all that were made."""
        with ExitStack() as stack:
            for part in self.parts.values():
                hosts = stack.enter_context(part.removed(hosts, root, planned=planned))
            yield hosts


def additions(verb: str) -> OptionGroup:
    """Return the options that extensions add to a verb, as the keyword `added`: `Additions`."""
    options = [load(each.options[verb]) for each in extensions() if verb in each.options]
    return option_group("added", lambda **parts: Additions(parts), *options)
