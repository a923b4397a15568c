"""Objects as text; the same ones give the same bytes."""

from collections.abc import Iterable

import msgspec
import yaml

from phalanx.model.kinds import Document


class _Plain(yaml.SafeDumper):
    """Writes the same part twice rather than once with a reference to it, and texts of several lines as they are."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Plain.add_representer(str, _text)


def yaml_text(value: object) -> str:
    """Return anything that YAML can say."""
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1 << 16)


def documents_text(documents: Iterable[Document]) -> str:
    """Return several YAML documents."""
    return "---\n".join(map(yaml_text, documents))


def list_text(documents: Iterable[Document]) -> str:
    """Return one JSON list, as kubectl reads it."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    return f"{msgspec.json.format(msgspec.json.encode(listed), indent=2).decode()}\n"
