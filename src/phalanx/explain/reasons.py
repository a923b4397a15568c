"""Every code that a verdict, a gang, a condition or an event may have, with its cause, what helps, and an example of the sentence.

    python -m phalanx.explain.reasons > docs/reference/reasons.md

writes the page from `verdict_reasons.py`, `eviction_reasons.py`, `node_reasons.py` and `recorded_reasons.py`.
"""

import sys
from collections.abc import Iterable, Iterator

from phalanx.explain.eviction_reasons import EVICTIONS
from phalanx.explain.node_reasons import ALL_NODE_REASONS, NodeReason
from phalanx.explain.reason_entry import ReasonEntry
from phalanx.explain.recorded_reasons import CONDITIONS, EVENTS
from phalanx.explain.verdict_reasons import LACKS, VERDICTS

_HEAD = """# Reason codes

Every code that Phalanx gives for a refusal, a condition or an event. The page is made from the code: `python -m
phalanx.explain.reasons`.

## Verdicts

A verdict has the plugin, a code, numbers and a message. The sentence in `why` is made from verdicts; the codes of
gangs that `allocate` skipped are in the trace of a session (`-v 4`).
"""
_EVICTIONS = """## Evictions

Why nobody is evicted for a gang, and what protects those that run; see
[why did my urgent job not preempt](../explanation/evictions.md#why-did-my-urgent-job-not-preempt).
"""
_NODES = """## Nodes

Why nodes do not suit a pod. The code of what has to change first is the reason code of the gang; `phalanx explain`
shows the others.
"""
_FILTERS = """Filters refuse nodes with the text of kube-scheduler, which the conditions of pods repeat. The sentence in `why` names
the thing instead: the taint, the label, the port and the pod that has it, the volume. A node that fails the node
affinity, not the selector, has the code `NodeAffinityMismatch`.
"""
_OTHERS = """Two texts have the name of the thing in them: those of a revocable zone that is closed (`RevocableZone`), and of nodes
without the label value of the group (`GroupLabel`).
"""
_CONDITIONS = """## Conditions

The conditions of groups and pods, in the wording of their dialect.
"""
_KAI = """KAI's PodGroup also has the verdicts `OverLimit`, `NonPreemptibleOverQuota`, `TopologyNotFound`, `LevelNotFound`,
`NoShard` and `BindBackoff`.
"""
_WITH_REMEDY = ("cause", "what helps", "example")


def page() -> str:
    """Return the page of reason codes."""
    lacks = ((item.code, item.cause, item.remedy, item.example) for item in LACKS)
    filters = _table(("code", "reason", "in our words", "what helps"), map(_node_row, ALL_NODE_REASONS))
    recorded = [_table(("code", where, "meaning"), rows) for where, rows in (("on", CONDITIONS), ("about", EVENTS))]
    parts = [
        _HEAD, _entries(VERDICTS), _EVICTIONS, _entries(EVICTIONS),
        _NODES, _table(("code", *_WITH_REMEDY), lacks), _FILTERS, filters, _OTHERS,
        _CONDITIONS, recorded[0], _KAI, "## Events\n", recorded[1],
    ]  # fmt: skip
    return "\n".join(parts)


def _entries(entries: Iterable[ReasonEntry]) -> str:
    rows = ((item.code, item.source, item.cause, item.remedy, item.example) for item in entries)
    return _table(("code", "from", *_WITH_REMEDY), rows)


def _node_row(item: NodeReason) -> tuple[str, ...]:
    return item.code, f"`{item.reason}`", item.many, item.remedy


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"{line}\n" for line in _lines(titles, rows))


def _lines(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    for code, *cells in rows:
        yield f"| `{code}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
