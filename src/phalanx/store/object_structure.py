"""How objects are put together, as server-side apply sees it: which lists have items that are told apart, and what is one value.

Kubernetes' own kinds have it from their types, custom ones from the schema of their definition. Of what nobody has described, maps
are looked into and lists are one value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.manifests.definitions import DEFINITION_BY_KIND
from phalanx.model.kinds import Kind
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of_kind

Schema = Mapping[str, Any]  # Any: as JSON has it
METADATA = "meta.v1.ObjectMeta"


@dataclass(frozen=True, slots=True)
class Structure:
    """What is known of a value."""

    keys: tuple[str, ...] = ()
    """Fields that tell the items of a list apart."""
    is_set: bool = False
    """A list of different values."""
    is_atomic: bool = False
    """It has one owner as a whole."""
    type_name: str = ""
    """The type of Kubernetes that it has, or its items."""
    schema: Schema = field(default_factory=dict)
    """The schema of a custom object that it has, or its items."""
    is_map: bool = False
    """Its type or schema is that of every value in it, whatever the key."""

    def at(self, name: str) -> "Structure":
        """Return the structure of a field."""
        if self.is_map:
            return Structure(type_name=self.type_name, schema=self.schema)
        part = fields_of(self.type_name).get(name)
        if part is not None:
            return _of_field(part)
        properties = self.schema.get("properties", {})
        if name == "metadata" and "metadata" in properties and not self.type_name:
            return Structure(type_name=METADATA)
        return of_schema(properties.get(name, {}))

    @property
    def item(self) -> "Structure":
        """Return the structure of the items of a list."""
        return Structure(type_name=self.type_name, schema=self.schema)


def structure_of(kind: Kind) -> Structure:
    """Return the structure of the objects of a kind."""
    name = type_of_kind(kind)
    if name is not None:
        return Structure(type_name=name)
    definition = DEFINITION_BY_KIND.get(kind)
    schema = dict(definition.schema) if definition is not None else {}
    return Structure(schema={**schema, "properties": {**schema.get("properties", {}), "metadata": {}}})


def _of_field(part: FieldType) -> Structure:
    return Structure(part.keys, part.is_set, part.is_atomic, part.name, is_map=part.shape == "{}")


def of_schema(schema: Schema) -> Structure:
    """Return the structure that a schema describes."""
    if "items" in schema:
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        return Structure(keys, schema.get("x-kubernetes-list-type") == "set", schema=schema["items"])
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return Structure(is_atomic=is_atomic, schema=schema["additionalProperties"], is_map=True)
    return Structure(is_atomic=is_atomic, schema=schema)
