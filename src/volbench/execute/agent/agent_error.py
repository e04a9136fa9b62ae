"""Failures that an operation of the agent reports to its controller."""

import errno

_LIMITS = {errno.EAGAIN: "ulimit -u", errno.EMFILE: "ulimit -n"}


class AgentError(Exception):
    """An operation could not be carried out.

    Args:
        kind: ``refused`` (it might destroy data, or breaks a rule of the agent), ``missing`` (no
            such file or program), ``denied`` (no permission), ``damaged`` (data arrived changed),
            ``timeout`` (a program was killed) or ``failed`` (anything else).
        message: the reason alone, such as the text of an OSError, without subject and full stop.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message


def of_os_error(error: "AgentError | OSError") -> AgentError:
    """Return the failure that describes an OSError."""
    if isinstance(error, AgentError):
        return error
    reason = error.strerror or str(error)
    if error.errno in _LIMITS:
        return AgentError("failed", "{}: see {} there".format(reason, _LIMITS[error.errno]))
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return AgentError("missing", reason)
    if isinstance(error, PermissionError):
        return AgentError("denied", reason)
    return AgentError("failed", reason)
