"""Which objects a list or a watch wants: by namespace, labels and fields, written as in a query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.selectors import Requirement
from phalanx.store.metadata_rules import key_fault, value_fault

Document = Mapping[str, Any]
_SET = re.compile(r"\s*(\S+)\s+(in|notin)\s*\(([^()]*)\)\s*$")
_COMPARED = re.compile(r"\s*([^\s<>]+)\s*([<>])\s*([+-]?[0-9]{1,18})\s*$")
_SIGNS = re.compile(r"[(),]")
EXAMPLES = "write for example app=train, app!=train, 'app in (train, test)', app or '!app'"

FIELDS = ("metadata.name", "metadata.namespace")
FIELDS_BY_KIND = {
    "Pod": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
            "status.podIP", "status.nominatedNodeName"),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Event": ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
              "involvedObject.apiVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "type"),
}  # fmt: skip
"""What a query may choose objects by, besides their labels."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace with label and field selectors; what is empty matches everything."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()
    """Path, whether it must be equal, and the value."""

    def wants(self, document: Document) -> bool:
        """Tell whether an object belongs to it."""
        meta = document.get("metadata", {})
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        if self.labels and not all(requirement.matches(meta.get("labels") or {}) for requirement in self.labels):
            return False
        return all((_field(document, path) == value) == is_equal for path, is_equal, value in self.fields)


EVERYTHING = Selection()


@lru_cache(maxsize=256)
def selection(namespace: str = "", labels: str = "", fields: str = "") -> Selection:
    """Read a selection as a query writes it: ``app=train,tier!=test`` and ``spec.nodeName=node-1``."""
    return Selection(namespace, tuple(map(_requirement, _split(labels))), tuple(map(_field_test, _split(fields))))


def check_fields(kind: str, chosen: Selection) -> None:
    """Raise if a selection names a field by which objects of a kind cannot be chosen."""
    known = (*FIELDS, *FIELDS_BY_KIND.get(kind, ()))
    for path, _, _ in chosen.fields:
        if path not in known:
            raise ClusterError(f"field label not supported: {path}; {kind} has {', '.join(known)}")


def _split(text: str) -> list[str]:
    """Take a list apart at its commas, but for those between parentheses; in linear time, since anybody may send any text."""
    cuts, closer = [len(text)], ""
    for sign in reversed([*_SIGNS.finditer(text)]):
        if sign[0] != ",":
            closer = sign[0]
        elif closer != ")":
            cuts.append(sign.start())
    parts = (text[start + 1 : end].strip() for start, end in pairwise((-1, *reversed(cuts))))
    return [part for part in parts if part]


def _requirement(text: str) -> Requirement:
    found = _read(text)
    if key_fault(found.key) or any(map(value_fault, found.values)):
        raise ClusterError(f"unable to parse requirement {text!r}; {EXAMPLES}")
    return found


def _read(text: str) -> Requirement:
    if found := _SET.match(text):
        key, word, values = found.groups()
        listed = tuple(value.strip() for value in values.split(","))
        return Requirement(key, "In" if word == "in" else "NotIn", listed)
    if found := _COMPARED.match(text):
        key, sign, value = found.groups()
        return Requirement(key, "Gt" if sign == ">" else "Lt", (value,))
    if text.startswith("!"):
        return Requirement(text[1:].strip(), "DoesNotExist")
    if not any(sign in text for sign in "=!"):
        return Requirement(text, "Exists")
    key, is_equal, value = _equation(text)
    return Requirement(key, "In" if is_equal else "NotIn", (value,))


def _field_test(text: str) -> tuple[str, bool, str]:
    if "=" not in text:
        raise ClusterError(f"invalid field selector {text!r}; write for example spec.nodeName=node-1")
    return _equation(text)


def _equation(text: str) -> tuple[str, bool, str]:
    for sign, is_equal in (("!=", False), ("==", True), ("=", True)):
        key, found, value = text.partition(sign)
        if found:
            return key.strip(), is_equal, value.strip()
    raise ClusterError(f"unable to parse requirement {text!r}; {EXAMPLES}")


def _field(document: Document, path: str) -> str:
    value: Any = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
