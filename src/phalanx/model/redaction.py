"""What is shown of values that may be secret: a configuration is served over HTTP, and addresses end up in events and logs."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
_SECRET_KEY = re.compile(r"passw(or)?d|secret|token|credential|authorization|api[-_]?key|private[-_]?key", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
"""The user and the password of an address; a password may have an @ in it."""
_QUERY = re.compile(r"(://[^?#\s]*\?)[^#\s]+")


def redacted_text(text: str) -> str:
    """Return a text whose addresses have no user, no password and no query any more."""
    return _QUERY.sub(rf"\g<1>{HIDDEN}", _USER.sub(f"{HIDDEN}@", text))


def redacted(value: Any) -> Any:  # Any: as JSON has it
    """Return plain data without what may be secret: parts of addresses, and texts under a key that says so."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if _is_secret(key, item) else redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return redacted_text(value) if isinstance(value, str) else value


def _is_secret(key: object, value: object) -> bool:
    return isinstance(value, str) and bool(value) and _SECRET_KEY.search(str(key)) is not None
