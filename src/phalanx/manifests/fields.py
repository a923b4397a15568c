"""What the fields of our kinds are made of: bounded numbers and texts, amounts, and the rules of a struct or a list.

A struct describes an object as its clients send it, whole, so that the API server drops nothing. A field without a default is
required; one whose default is None may be missing; any other default is written into the object by the API server. Every list,
map and text that a rule reads has a greatest length: the API server refuses rules that could take too long.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from msgspec import Meta, Struct

QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of a value, in CEL; the message says what to write instead."""

    name: str
    cel: str
    message: str
    field: str = ""
    """The field below the value that is at fault, with its dot; the value itself if empty."""


class Fields(Struct, rename="camel", kw_only=True):
    """Base of all structs: camel case outside, snake case inside."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    keeps_unknown: ClassVar[bool] = False
    """Fields that are not described here are kept all the same."""


def ruled(*rules: Rule) -> dict[str, Any]:
    """Return what Meta(extra=...) takes for the rules of a list or map."""
    return {"rules": rules}


_INT32 = {"format": "int32"}
_INT64 = {"format": "int64"}

Int32: TypeAlias = Annotated[int, Meta(extra_json_schema=_INT32)]
Int64: TypeAlias = Annotated[int, Meta(extra_json_schema=_INT64)]
Count: TypeAlias = Annotated[int, Meta(ge=0, extra_json_schema=_INT32)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, extra_json_schema=_INT32)]
Text: TypeAlias = Annotated[str, Meta(max_length=253)]
Name: TypeAlias = Annotated[str, Meta(max_length=253, pattern=SUBDOMAIN)]
Moment: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Amount: TypeAlias = Annotated[int | str, Meta(extra_json_schema={"pattern": QUANTITY, "maxLength": 64})]
Amounts: TypeAlias = Annotated[dict[str, Amount], Meta(max_length=64)]
Strings: TypeAlias = dict[str, str]
Anything: TypeAlias = dict[str, Any]
"""An object that is not looked into."""


class Requirement(Fields):
    """What a label must be."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Fields):
    """Which labels are meant."""

    match_labels: Strings | None = None
    match_expressions: list[Requirement] | None = None


class Condition(Fields):
    """What was observed, and since when."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: Moment | None = None
    last_probe_time: Moment | None = None
    observed_generation: Int64 | None = None
