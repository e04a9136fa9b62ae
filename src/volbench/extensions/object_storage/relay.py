"""Results on their way through a bucket: pods write objects, the controller reads and removes them.

A pod needs no credentials: it gets a signed URL for one object and a quarter of an hour.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from volbench.errors import AuthError, InputError, TransferError, TransportError, VolbenchError
from volbench.execute.agent.agent_error import AgentError
from volbench.execute.agent.files import put_folder
from volbench.execute.local import temporary_folder
from volbench.extras import install_command
from volbench.store.atomic_files import unwritable

VALID_S = 900.0  # Time in which a pod must have written an object; no verdict depends on it.
_ROLES = "169.254."  # Where machines and pods of AWS get the credentials of their role.


class Relay:
    """Objects below an address such as ``s3://bucket/prefix``.

    Args:
        address: of object storage that speaks S3; credentials, region and endpoint come from
            variables such as ``AWS_ACCESS_KEY_ID``, ``AWS_REGION`` and ``AWS_ENDPOINT_URL``, or
            from the role of the machine.

    Raises:
        InputError: it is not such an address, or a package is missing.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme != "s3" or not parts.hostname or parts.username or parts.password:
            raise InputError(
                f"results cannot be collected through {parts.scheme}://{parts.hostname or ''}",
                hint="name a bucket that speaks S3: s3://BUCKET/PREFIX",
            )
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ImportError as error:
            raise InputError(
                "results cannot be collected through a bucket: the package obstore is missing",
                hint=install_command("bucket"),
            ) from error
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        self.address = address.rstrip("/")
        self._obstore, self._error = obstore, BaseError
        self._store = S3Store.from_url(
            self.address,
            config={"endpoint": endpoint} if endpoint else None,
            client_options={
                "allow_http": (endpoint or "").startswith("http://"),
                "timeout": timedelta(seconds=VALID_S),  # of a whole object
            },
        )

    def url(self, name: str) -> str:
        """Return a URL with which anyone may write the object of that name.

        Raises:
            TransportError: there are no credentials.
        """
        with self._reported():
            return self._obstore.sign(self._store, "PUT", name, timedelta(seconds=VALID_S))

    @contextmanager
    def opened(self, name: str, *, size: int, sha256: str) -> Iterator[IO[bytes]]:
        """Yield the content of an object as a temporary file, after comparing its digest.

        Raises:
            TransferError: it is not what was written.
            TransportError: it cannot be read.
            ArchiveError: the disk of temporary files is full.
        """
        digest, read, place = hashlib.sha256(), 0, temporary_folder()
        with tempfile.TemporaryFile(dir=place) as content:
            for chunk in self._chunks(name):
                digest.update(chunk)
                try:
                    read += content.write(chunk)
                    content.flush()
                except OSError as error:
                    raise unwritable(Path(place), error) from error
                if read > size:
                    break
            if read != size or digest.hexdigest() != sha256:
                raise TransferError(
                    f"an object below {self.address} is not the one that was written",
                    hint="see who else can write to that bucket",
                )
            content.seek(0)
            yield content

    def _chunks(self, name: str) -> Iterator[bytes]:
        with self._reported():
            for chunk in self._obstore.get(self._store, name):
                yield bytes(chunk)

    def remove(self, name: str) -> None:
        """Remove an object, which need not be there."""
        with self._reported():
            self._obstore.delete(self._store, name)

    def check(self) -> None:
        """Write an object with a signed URL as a pod does, read it and remove it.

        Raises:
            InputError: the bucket does not exist.
            AuthError: writing, reading or removing is denied.
            TransportError: the storage does not answer.
        """
        name = f"volbench-check-{secrets.token_hex(8)}"
        url = self.url(name)
        with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder:
            Path(folder, "check").write_text("volbench tries whether pods can\n", encoding="utf-8")
            try:
                put: dict[str, Any] = put_folder(folder, url)
            except AgentError as error:
                raise self._refused(error) from None
        try:
            with self.opened(name, **put):
                pass
        finally:
            self.remove(name)

    def _refused(self, error: AgentError) -> VolbenchError:
        """Return why nothing can be written."""
        if error.kind == "denied":
            return self._denied()
        if error.kind == "missing":
            return InputError(
                f"the bucket of {self.address} does not exist",
                hint="create the bucket, or correct the address, the region or AWS_ENDPOINT_URL",
            )
        return self._unreachable(error.message)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn errors of the library into the project's own."""
        try:
            yield
        except (self._error, OSError) as error:
            if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
                raise self._denied() from error
            reason = " ".join(str(error).partition("Debug source")[0].split())
            if _ROLES in reason:
                raise AuthError(
                    f"there are no credentials for {self.address}",
                    hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run on a machine or "
                    "in a pod with a role",
                ) from error
            raise self._unreachable(reason[:200]) from error

    def _denied(self) -> AuthError:
        return AuthError(
            f"access to {self.address} was denied (403)",
            hint="check the credentials: s3:PutObject, s3:GetObject and s3:DeleteObject are needed",
        )

    def _unreachable(self, reason: str) -> TransportError:
        return TransportError(
            f"{self.address} cannot be reached: {reason}",
            hint="check the address, the credentials, the network and AWS_ENDPOINT_URL",
        )
