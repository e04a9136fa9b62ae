"""Errors of several hosts become one error that names each."""

import pytest

from volbench.engine.hosts.connected_host import ConnectedHost, raise_all
from volbench.errors import CampaignError, ConnectError, RefusedError, TransportError, VolbenchError
from volbench.execute.client import PythonError
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import OperationError
from volbench.model.campaign.host import Host


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([PythonError("no Python"), PythonError("no Python")], TransportError),
        ([OperationError("failed", "no memory"), OperationError("failed", "odd")], TransportError),
        ([ConnectError("lost"), ConnectError("lost")], ConnectError),
        ([RefusedError("in use"), ConnectError("lost")], CampaignError),
    ],
)
def test_errors_of_all_hosts_become_one(
    errors: list[VolbenchError], expected: type[VolbenchError]
) -> None:
    """Also errors that are made with other arguments than their class's general form."""
    with pytest.raises(VolbenchError) as caught:
        raise_all([ConnectedHost(Host(name=name), LocalExecutor()) for name in "ab"], errors)
    assert type(caught.value) is expected
    listed = f"a: {errors[0].message}; b: {errors[1].message}"
    assert caught.value.message == f"2 of 2 hosts cannot take part: {listed}"
    assert caught.value.hint == (errors[0].hint if errors[0].hint == errors[1].hint else "")
