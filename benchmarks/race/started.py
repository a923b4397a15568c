"""Which gangs have started, as a watch of bound pods tells: when each became whole, and for how long one was partly bound."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Started:
    """Counts bound pods by gang; times are those of one clock, in seconds."""

    size: int
    """Of every gang."""
    pods: dict[str, set[str]] = field(default_factory=dict)
    """The bound pods of each gang that has any."""
    whole_at: dict[str, float] = field(default_factory=dict)
    """When each gang that is whole, or was, became so; in that order."""
    last_bind: float = 0.0
    binds: int = 0
    longest_part: float = 0.0
    """The longest time for which one gang was partly bound."""
    _part_since: dict[str, float] = field(default_factory=dict)
    _retired: set[str] = field(default_factory=set)

    def bound(self, gang: str, pod: str, at: float) -> None:
        """A pod has got a node."""
        members = self.pods.setdefault(gang, set())
        if pod in members:
            return
        members.add(pod)
        self.binds, self.last_bind = self.binds + 1, at
        if len(members) == self.size:
            self.whole_at.setdefault(gang, at)
            self._end_part(gang, at)
        else:
            self._part_since.setdefault(gang, at)

    def gone(self, gang: str, pod: str, at: float) -> None:
        """A pod that had a node is no more."""
        members = self.pods.get(gang, set())
        members.discard(pod)
        if not members:
            self.pods.pop(gang, None)
            self._end_part(gang, at)
        elif gang not in self._retired:
            self._part_since.setdefault(gang, at)

    def retire(self, gang: str) -> None:
        """A gang is about to end, pod by pod; that is no gang in part."""
        self._retired.add(gang)

    def _end_part(self, gang: str, at: float) -> None:
        since = self._part_since.pop(gang, at)
        self.longest_part = max(self.longest_part, at - since)

    def close(self, at: float) -> None:
        """Count gangs that are still partly bound up to now."""
        for since in self._part_since.values():
            self.longest_part = max(self.longest_part, at - since)

    @property
    def whole(self) -> int:
        """How many gangs are whole now."""
        return sum(len(members) == self.size for members in self.pods.values())

    @property
    def in_part(self) -> int:
        """How many gangs are partly bound now."""
        return len(self._part_since)
