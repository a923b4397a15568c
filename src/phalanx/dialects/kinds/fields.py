"""What the fields of our kinds are made of: bounded numbers and texts, amounts, and the rules of a struct or a list.

A struct describes an object as its clients send it, whole, so that the API server drops nothing. A field without a default is
required; one whose default is None may be missing; any other default is written into the object by the API server. Every list,
map and text that a rule reads has a greatest length: the API server refuses rules that could take too long.

`schema_of` makes the strict schema of a struct, and `reader_of` what reads its objects. Where both differ by more than strictness,
the field has the type in which it is read, and says with `checked_as` what the API server checks instead.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from msgspec import NODEFAULT, Meta, Struct, field

from phalanx.dialects import schema

INT32 = "int32"
RULES, CHECKED_AS, MISSING = "rules", "checked_as", "missing"
"""What may be said of a field besides its bounds."""
QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"


@dataclass(frozen=True, slots=True)
class CelRule:
    """What must hold of a value, in CEL; the message says what to write instead."""

    name: str
    cel: str
    message: str
    field: str = ""
    """The field below the value that is at fault, with its dot; the value itself if empty."""


class Fields(Struct, rename="camel", kw_only=True):
    """Base of all structs: camel case outside, snake case inside."""

    rules: ClassVar[tuple[CelRule, ...]] = ()
    keeps_unknown: ClassVar[bool] = False
    """Fields that are not described here are kept all the same."""


class CustomObject(Fields):
    """Base of all kinds; the API server describes metadata itself."""

    metadata: schema.Meta


def ruled(*rules: CelRule) -> dict[str, Any]:
    """Return what Meta(extra=...) takes for the rules of a list or map."""
    return {RULES: rules}


def checked_as(kind: Any) -> dict[str, Any]:  # Any: a struct, or an alias such as Strings
    """Return what Meta(extra=...) takes for a field that the API server checks as another type than it is read in."""
    return {CHECKED_AS: kind}


NEEDED = {MISSING: NODEFAULT}
"""What Meta(extra=...) takes for a required field without which nobody can read the object."""


def when_missing(value: object) -> dict[str, Any]:
    """Return what Meta(extra=...) takes for a required field that is not empty where an object lacks it all the same."""
    return {MISSING: value}


_INT32 = {"format": INT32}
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


class LabelRequirement(Fields):
    """What a label must be."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelectorFields(Fields):
    """Which labels are meant."""

    match_labels: Strings | None = None
    match_expressions: list[LabelRequirement] | None = None


Selector: TypeAlias = Annotated[schema.Selector, Meta(extra=checked_as(LabelSelectorFields))]
"""Read as in Kubernetes' own objects."""


class ObjectCondition(Fields):
    """What was observed, and since when."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: Moment | None = None
    last_probe_time: Moment | None = None
    observed_generation: Int64 | None = None


class PodGroupCondition(Fields):
    """What a session said of a gang."""

    type: str | None = None
    status: str | None = None
    transition_id: str | None = field(default=None, name="transitionID")
    last_transition_time: Moment | None = None
    reason: str | None = None
    message: str | None = None
