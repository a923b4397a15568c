"""What one reader may see: what the API server would show to the same person."""

from dataclasses import dataclass

from phalanx.model.kinds import split_key


@dataclass(frozen=True, slots=True)
class Scope:
    """Namespaces and kinds that somebody may list."""

    namespaces: frozenset[str] | None = None
    """Those with gangs and pods that may be seen; None: all."""
    events: frozenset[str] | None = None
    """Those with events that may be seen; None: all."""
    sees_nodes: bool = True
    sees_queues: bool = True

    @property
    def is_whole(self) -> bool:
        """Tell whether everything may be seen."""
        return self.namespaces is None and self.sees_nodes and self.sees_queues

    def sees(self, namespace: str) -> bool:
        """Tell whether the gangs and pods of a namespace may be seen."""
        return self.namespaces is None or namespace in self.namespaces

    def sees_key(self, key: str) -> bool:
        """Tell whether something that is called ``namespace/name`` may be seen."""
        return self.namespaces is None or split_key(key)[0] in self.namespaces

    def sees_events(self, namespace: str) -> bool:
        """Tell whether the events of a namespace may be seen."""
        return self.sees(namespace) and (self.events is None or namespace in self.events)


EVERYTHING = Scope()
