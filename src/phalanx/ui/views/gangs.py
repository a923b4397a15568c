"""All gangs as columns: what a table of ten thousand rows needs, and no more.

Texts that many gangs share stand once in a list, and the columns have their places in it.
"""

from collections.abc import Iterable

from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import unit_of

NUMBERS = ("minimum", "placed", "running")
FACTS = ("pods", "held", "asked", "priority", "created", "started", "ended")


class SharedTexts:
    """Texts, each once, and their places."""

    def __init__(self) -> None:
        """Begin with none."""
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return the place of a text, which it gets if it is new."""
        return self._places.setdefault(text, len(self._places))

    def places(self, texts: Iterable[str]) -> list[int]:
        """Return the places of texts."""
        return [self._places.setdefault(text, len(self._places)) for text in texts]

    @property
    def texts(self) -> list[str]:
        """All of them in the order of their places."""
        return list(self._places)


def gangs(seen: SeenCluster, scope: Scope) -> Json:
    """Return the gangs that a reader may see, by their names."""
    found = [gang for _, gang in sorted(seen.gangs.items()) if scope.sees_key(gang.key)]
    texts = SharedTexts()
    shared = {
        "queue": texts.places(gang.queue for gang in found), "status": texts.places(gang.status.value for gang in found),
        "code": texts.places(gang.code for gang in found), "why": texts.places(gang.why for gang in found),
        "reserved": texts.places(_reserved(seen, gang.key) for gang in found),
    }  # fmt: skip
    return {
        "now": seen.now, "unit": unit_of(seen.resource), "texts": texts.texts,
        "columns": {
            "gang": [gang.key for gang in found], **shared,
            **{name: [getattr(gang, name) for gang in found] for name in NUMBERS},
            **{name: [getattr(gang.facts, name) for gang in found] for name in FACTS},
        },
    }  # fmt: skip


def _reserved(seen: SeenCluster, key: str) -> str:
    return seen.reservations[key].text if key in seen.reservations else ""
