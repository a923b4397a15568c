"""Gangs that have finished, and how long they took: what is known of the next one like them. A history file keeps them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated

import msgspec

from phalanx.errors import ConfigError
from phalanx.model.name_pattern import pattern_of as pattern_of

EXAMPLE = '{"gang": "research/bert", "seconds": 5400}'
ENOUGH = 3
"""With so many finished gangs of its owner nobody asks for those of its name, and so on."""


class FinishedGang(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gang that has succeeded: one line of a history file."""

    gang: str
    """Namespace and name."""
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    """From its start to its end."""
    owner: str = ""
    """The topmost owner that is known, as "CronJob ml/nightly"."""
    image: str = ""
    """The images of its pods, in the order of their names."""
    finished: str = ""
    """When, as Kubernetes writes it."""


def read_history(text: bytes, name: str) -> list[FinishedGang]:
    """Return the gangs of a history file: one JSON object per line; `name` is the file that errors name."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            if line.strip():
                found.append(msgspec.json.decode(line, type=FinishedGang))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            fault = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
            raise ConfigError(f"{name}, line {number}: {fault}; write one object per line, such as {EXAMPLE}") from problem
    return found


def write_history(gangs: Iterable[FinishedGang]) -> bytes:
    """Return a history file; a gang that is there several times is written once."""
    ordered = sorted(_once(gangs), key=lambda gang: (gang.finished, gang.gang))
    return b"".join(msgspec.json.encode(gang) + b"\n" for gang in ordered)


def _once(gangs: Iterable[FinishedGang]) -> list[FinishedGang]:
    """Return each gang once, in the cluster and in files; without a time nobody can say that two are the same."""
    found = {(gang.gang, gang.finished or str(number)): gang for number, gang in enumerate(gangs)}
    return list(found.values())


class History:
    """Finished gangs, found by what they have in common with others."""

    def __init__(self, gangs: Iterable[FinishedGang]) -> None:
        """Sort them by owner, name and image."""
        self._seconds: dict[str, list[float]] = defaultdict(list)
        for gang in _once(gangs):
            for label in _labels(gang.gang, gang.owner, gang.image):
                self._seconds[label].append(gang.seconds)

    def like(self, gang: str, owner: str, image: str) -> tuple[str, list[float]]:
        """Return how long the gangs took that are most like one, and what they have in common; none if there are none."""
        labels = _labels(gang, owner, image)
        best = max(labels, key=lambda label: min(len(self._seconds.get(label, ())), ENOUGH))
        return best, sorted(self._seconds.get(best, ()))


def _labels(gang: str, owner: str, image: str) -> list[str]:
    """Return what gangs may have in common, what says most first."""
    name = pattern_of(gang)
    return [*([owner] if owner else []), f"the name {name}", *([f"the image {image}"] if image else [])]
