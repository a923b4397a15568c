"""Names of a trace as names of Kubernetes objects: lower case, digits and dashes, beginning with a letter."""

import re
from collections.abc import Iterator

LONGEST = 40
"""Leaves room for what the names of pods add."""


class Names:
    """Gives every name of a trace one valid name; two that would look alike get a number."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._name_by_text: dict[str, str] = {}
        self._taken: dict[str, int] = {}

    def same(self, text: str) -> str:
        """Return the name for this text, the same each time."""
        if text not in self._name_by_text:
            self._name_by_text[text] = self.fresh(text)
        return self._name_by_text[text]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield every text that `same` was asked for, with its name."""
        return iter(self._name_by_text.items())

    def fresh(self, text: str) -> str:
        """Return a name for this text that no other has."""
        plain = name = valid(text, self._prefix)
        while name in self._taken:
            self._taken[plain] += 1
            name = f"{plain}-{self._taken[plain]}"
        self._taken[name] = 1
        return name


def valid(text: str, prefix: str) -> str:
    """Return a valid name close to the text; the prefix goes before one that does not begin with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    named = plain if plain[:1].isalpha() else f"{prefix}-{plain}"
    return named[:LONGEST].strip("-")
