"""Which options and parts of URIs are secrets, and what is shown in their place."""

import json
import re
from importlib.resources import files

import pytest

from volbench.errors import InputError
from volbench.model.profile.option_policy import RISKY
from volbench.model.profile.secret_values import (
    SECRET_OPTIONS,
    SHOWN_CREDENTIALS,
    mask_text,
    merge_secrets,
    split_secret,
)

_SUSPECT = re.compile(r"pass|key|token|secret|user(?!space)|psk|credential|cert|conf$")


def test_every_option_about_credentials_was_reviewed() -> None:
    """An option whose name sounds like one is in a table, with its reason."""
    text = files("volbench.fio.jobs").joinpath("options.json").read_text(encoding="utf-8")
    known = {option["name"]: option for option in json.loads(text)["options"]}
    texts = {name for name, option in known.items() if option["kind"] == "text"} | RISKY.keys()
    suspect = {name for name in texts if _SUSPECT.search(name)}
    assert suspect <= SECRET_OPTIONS.keys() | SHOWN_CREDENTIALS.keys()
    assert not SECRET_OPTIONS.keys() & SHOWN_CREDENTIALS.keys()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("nbd://user:pw@host/x", "nbd://user:***@host/x"),
        ("nbd://user:p@w@host/x", "nbd://user:***@host/x"),
        ("--on=data=nbds://:pw@host", "--on=data=nbds://:***@host"),
        ("iscsi://user%pw@host/t/1", "iscsi://user%***@host/t/1"),
        ("https://host:443/a@b", "https://host:443/a@b"),
        ("nbd://user@host:10809/x", "nbd://user@host:10809/x"),
        ('"http_pass" : "a \\" b",', '"http_pass" : "***",'),
        ("http_s3_key=abc/def+1", "http_s3_key=***"),
        ("--set=j.http_swift_token=abc", "--set=j.http_swift_token=***"),
        ("http_pass: 'x y'", "http_pass: '***'"),
        ("curl --password=abc https://h", "curl --password=*** https://h"),
        ("ssh -o ProxyCommand='connect password=abc %h'", None),
        ("/etc/passwd: no such file", "/etc/passwd: no such file"),
        ("/etc/passwd:17: not a profile", "/etc/passwd:17: not a profile"),
        ("https://h/?a=1&token=abc", "https://h/?a=1&token=***"),
        ("https://h/token=abc", "https://h/token=***"),
        ("verify_pattern=0xff", "verify_pattern=0xff"),
        ("/dev/disk/by-path/pci-0000:00:1f.2", "/dev/disk/by-path/pci-0000:00:1f.2"),
    ],
)
def test_only_the_secret_itself_is_masked(text: str, masked: str | None) -> None:
    """Only the secret itself is replaced."""
    found = mask_text(text)
    assert found == (text.replace("abc", "***") if masked is None else masked)
    assert mask_text(found) == found


def test_two_values_of_one_variable_are_refused() -> None:
    """The plan stores the same mask for both, and a resume could not tell them apart."""
    assert merge_secrets([("A", "x"), ("A", "x"), ("A", "***"), ("B", "")]) == {"A": "x"}
    with pytest.raises(InputError, match="two values"):
        merge_secrets([("A", "x"), ("A", "y")])


def test_a_secret_that_cannot_be_passed_on_is_refused() -> None:
    """A line break would end the line of the file that fio's environment is read from."""
    with pytest.raises(InputError, match="control characters"):
        split_secret("http_pass", "a\nb")
    with pytest.raises(InputError, match="more than one"):
        split_secret("exec_prerun", "a password=b token=c")
