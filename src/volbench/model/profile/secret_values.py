"""Passwords and keys in options and URIs: kept out of everything that is stored or printed.

A plan holds `MASK` in their place. fio gets the value from its environment: the job file refers to
a variable, which volbench sets for the process of the run only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from volbench.errors import InputError

# Stands for a secret in everything that is stored or printed, and in a profile or target for a
# secret that is to be taken from the environment or asked for
MASK = "***"

_PREFIX = "VOLBENCH_"

# Options of fio, up to 3.42, whose whole value is a secret, with the reason
SECRET_OPTIONS: Mapping[str, str] = {
    "http_pass": "password of the ioengine http",
    "http_s3_key": "secret access key of S3",
    "http_s3_security_token": "session token of S3",
    "http_s3_sse_customer_key": "key that encrypts objects of S3",
    "http_swift_token": "token of OpenStack Swift",
}

# Options that concern credentials and are stored and shown, with the reason
SHOWN_CREDENTIALS: Mapping[str, str] = {
    "http_user": "a user's name",
    "http_s3_keyid": "names the access key; worthless without its secret",
    "http_cert": "path of a certificate",
    "http_key": "path of a key; its content is not stored",
    "clientname": "a user's name of Ceph; its key is in a file",
    "conf": "path of Ceph's configuration",
    "spdk_conf": "path of SPDK's configuration",
    "psk": "path of a key; its content is not stored",
}

_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "api_key", "apikey"),
    *("access_key", "secret_key", "private_key", "account_key"),
)
_NAMED = re.compile(
    rf"(?i)((?:\b|_|-)(?!(?<=/)passwd:(?: |\d+:))"  # /etc/passwd:17: its message
    rf"(?:{'|'.join((*SECRET_OPTIONS, *_WORDS))})[\"']?\s*[=:]\s*)"
    r"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s\"',;&}]+)"
)
_URI = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^/\s\"'@:]*:)([^/\s\"']+)(?=@)")
_ISCSI = re.compile(r"(?i)(iscsi://[^/\s\"'@%]*%)([^/\s\"']+)(?=@)")
_PATTERNS = (_NAMED, _URI, _ISCSI)

_REFERENCE = re.compile(rf"\$\{{{_PREFIX}\w+\}}")


def mask_text(text: str) -> str:
    """Return a text with `MASK` for passwords in URIs and for values of secret options."""
    lower = text.lower()
    if any(word in lower for word in (*SECRET_OPTIONS, *_WORDS)):
        text = _NAMED.sub(_masked, text)
    if "@" in text:
        text = _ISCSI.sub(_masked, _URI.sub(_masked, text))
    return text


def _masked(match: re.Match[str]) -> str:
    quote = match[2][0] if match[2][0] in "\"'" else ""
    return f"{match[1]}{quote}{MASK}{quote}"


def split_secret(name: str, value: str) -> tuple[str, str]:
    """Return the masked value of an option or target, and its secret; empty if it has none.

    Args:
        name: of the option; empty for a target.
    """
    if name in SECRET_OPTIONS:
        secrets = [value]
        masked = MASK
    else:
        secrets = [match[2].strip("\"'") for p in _PATTERNS for match in p.finditer(value)]
        masked = mask_text(value)
    if len(secrets) > 1:
        raise InputError(
            f"{name or 'a target'} has more than one password",
            hint="leave one out, or put them into a file that fio reads",
        )
    secret = secrets[0] if secrets else ""
    if not secret.isprintable():
        raise InputError(
            f"the password in {name or masked} has control characters", hint="choose another"
        )
    return masked, secret


def option_variable(name: str) -> str:
    """Return the environment variable of an option's secret."""
    return _PREFIX + name.upper()


def target_variable(host: str, role: str, *, is_local: bool) -> str:
    """Return the environment variable of the password in a target's URI."""
    parts = (role, "password") if is_local else (host, role, "password")
    return _PREFIX + "_".join(re.sub(r"[^A-Za-z0-9]+", "_", word) for word in parts).upper()


def reference(variable: str, masked: str) -> str:
    """Return a masked value with a reference that fio replaces by the environment variable."""
    return masked.replace(MASK, f"${{{variable}}}")


def without_references(text: str) -> str:
    """Return a job file with `MASK` for its references, to be parsed without the secrets."""
    return _REFERENCE.sub(MASK, text)


def merge_secrets(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return secrets by variable, without secrets to be asked for."""
    secrets: dict[str, str] = {}
    for variable, secret in pairs:
        if secret in {"", MASK}:
            continue
        if secrets.setdefault(variable, secret) != secret:
            raise InputError(
                f"{variable.removeprefix(_PREFIX).lower()} has two values in this campaign",
                hint="use the same in all jobs, or a separate campaign for each",
            )
    return secrets
