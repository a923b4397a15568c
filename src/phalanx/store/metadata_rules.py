"""Names, labels and annotations that the API server refuses, whatever the object, in its words.

The server of an embedded cluster asks, since what it accepts is tried on a real one next. Objects of traces and of our own
controllers go into the store without that.
"""

import re
from collections.abc import Iterator
from typing import Any

from phalanx.errors import Invalid
from phalanx.model.kinds import NAMESPACE, Document, Kind

LABEL, WORD = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LONGEST_NAME, LONGEST_WORD = 253, 63
ENDS = "must start and end with an alphanumeric character"
SUBDOMAIN_RULE = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LABEL_RULE = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
WORD_RULE = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', and {ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{WORD}')"
)
VALUE_RULE = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({WORD})?')"
)
_LABEL, _SUBDOMAIN, _WORD = map(re.compile, (LABEL, SUBDOMAIN, WORD))
_AS_LABEL = frozenset({"Namespace", "Service"})
"""Kinds whose names have no dots, since they are parts of names in DNS."""


def refuse_metadata(kind: Kind, document: Document, old: Document | None = None) -> None:
    """Raise if the name of a new object, or labels or annotations that are new, are none."""
    meta, before = document.get("metadata") or {}, (old or {}).get("metadata") or {}
    kept = {key for key in ("name", "labels", "annotations") if meta.get(key) == before.get(key)}
    if faults := list(metadata_faults(kind, {key: value for key, value in meta.items() if key not in kept})):
        raise Invalid.because(kind.kind, str(meta.get("name") or ""), *faults)


def metadata_faults(kind: Kind, meta: Document) -> Iterator[str]:
    """Yield what is wrong with the metadata of an object."""
    yield from _name_faults(kind, meta)
    yield from _label_faults(meta.get("labels"))
    for key in annotations if isinstance(annotations := meta.get("annotations"), dict) else ():
        if fault := key_fault(str(key).lower()):
            yield f'metadata.annotations: Invalid value: "{key}": {fault}'


def _name_faults(kind: Kind, meta: Document) -> Iterator[str]:
    name = meta.get("name")
    if isinstance(name, str) and name and (fault := _name_fault(kind, name)):
        yield f'metadata.name: Invalid value: "{name}": {fault}'


def _name_fault(kind: Kind, name: str) -> str:
    is_label = kind is NAMESPACE or (kind.is_built_in and kind.kind in _AS_LABEL)
    if is_label:
        return label_fault(name)
    if len(name) > LONGEST_NAME:
        return f"must be no more than {LONGEST_NAME} bytes"
    return "" if _SUBDOMAIN.fullmatch(name) else SUBDOMAIN_RULE


def label_fault(name: str) -> str:
    """Return why something is no part of a name in DNS; nothing if it is one."""
    if len(name) > LONGEST_WORD:
        return f"must be no more than {LONGEST_WORD} bytes"
    return "" if _LABEL.fullmatch(name) else LABEL_RULE


def _label_faults(labels: Any) -> Iterator[str]:  # Any: as found in the object
    for key, value in labels.items() if isinstance(labels, dict) else ():
        for text, fault in ((key, key_fault(str(key))), (value, value_fault(str(value)))):
            if fault:
                yield f'metadata.labels: Invalid value: "{text}": {fault}'


def key_fault(key: str) -> str:
    """Return why something is no key of a label or annotation; nothing if it is one."""
    prefix, has_prefix, word = key.rpartition("/")
    if has_prefix and (len(prefix) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(prefix)):
        return f"prefix part {SUBDOMAIN_RULE}"
    if len(word) > LONGEST_WORD:
        return f"name part must be no more than {LONGEST_WORD} bytes"
    return "" if _WORD.fullmatch(word) else WORD_RULE


def value_fault(value: str) -> str:
    """Return why something is no value of a label; nothing if it is one."""
    if len(value) > LONGEST_WORD:
        return f"must be no more than {LONGEST_WORD} bytes"
    return "" if not value or _WORD.fullmatch(value) else VALUE_RULE
