"""The language of changes: what would be different, one text for each.

    node/NAME=drained    node/+2=NAME    node/NAME.labels.KEY=VALUE    queue/NAME.capability.nvidia.com/gpu=+4
    gang/NAMESPACE/NAME=gone    gang/NAMESPACE/NAME.minMember=3    pdb/NAMESPACE/NAME.disruptionsAllowed=2

One file per kind of object; `docs/reference/what-if.md` lists all of them.
"""

from collections.abc import Iterable
from types import MappingProxyType

from phalanx.errors import ConfigError
from phalanx.whatif.changes.budgets import BudgetChange, QuotaChange
from phalanx.whatif.changes.claims import ClaimChange
from phalanx.whatif.changes.gangs import GangChange
from phalanx.whatif.changes.nodes import NodeChange
from phalanx.whatif.changes.object_change import ObjectChange, close_to
from phalanx.whatif.changes.pods import PodChange
from phalanx.whatif.changes.queues import QueueChange

KINDS = MappingProxyType({
    kind.word: kind for kind in (NodeChange, QueueChange, GangChange, PodChange, BudgetChange, QuotaChange, ClaimChange)
})  # fmt: skip


def parse(text: str) -> ObjectChange:
    """Read a change."""
    target, equals, value = text.partition("=")
    word, slash, rest = target.partition("/")
    if word not in KINDS:
        raise ConfigError(f"change {text!r}: no kind of object {word!r} can be changed; {close_to(word, KINDS, 'kinds')}")
    if not slash or not rest or not equals or not value:
        raise ConfigError(f"change {text!r}: expected KIND/NAME=STATE or KIND/NAME.FIELD=VALUE, such as {_example(word)!r}")
    return KINDS[word].read(rest, value)


def parse_all(texts: Iterable[str]) -> list[ObjectChange]:
    """Read several changes."""
    return [parse(text) for text in texts]


def _example(word: str) -> str:
    kind = KINDS[word]
    name = "NAMESPACE/NAME" if word in ("gang", "pod", "pdb", "quota", "pvc") else "NAME"
    if kind.states:
        return f"{word}/{name}={kind.states[0]}"
    field, value = next(iter(kind.fields.items()))
    return f"{word}/{name}.{field}.cpu={value}"
