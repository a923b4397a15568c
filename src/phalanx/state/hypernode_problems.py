"""What is wrong with HyperNodes: members that do not exist, circles, members of two HyperNodes, tiers that do not rise.

The tree (`hypernodes.py`) leaves out what cannot be right and goes on with the rest, so nothing of this stops a session; but gangs
may find less room in a HyperNode than was meant, or none. Each problem is told on the HyperNode that is to be changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from phalanx.model.node import HyperNode
from phalanx.state.hypernodes import HyperTree, select
from phalanx.state.node_table import NodeTable

MOST_NAMED = 3
"""Names in a message."""
Problem = tuple[str, str]
"""The name of a HyperNode, and a sentence."""
Members = Mapping[str, Sequence[str]]
"""The names of members by the name of the HyperNode."""


def hypernode_problems(tree: HyperTree, nodes: NodeTable) -> dict[str, str]:
    """Return what is wrong and what to write instead, by the name of the HyperNode."""
    inner = _members(tree, nodes, of_hypernodes=True)
    circles = {name: circle for name in inner if (circle := _circle_from(name, inner))}
    texts: dict[str, list[str]] = {}
    for problems in (
        _missing(tree, nodes), _circles(circles), _nodes_in_two(tree, _members(tree, nodes, of_hypernodes=False)),
        _in_two("HyperNode", inner), _tiers(tree, inner, circles),
    ):  # fmt: skip
        for name, text in problems:
            texts.setdefault(name, []).append(f"spec.members: {text}")
    return {name: "; ".join(texts[name]) for name in sorted(texts)}


def _members(tree: HyperTree, nodes: NodeTable, *, of_hypernodes: bool) -> Members:
    names = tree.names if of_hypernodes else nodes.names
    numbers = tree.number_by_name if of_hypernodes else nodes.number_by_name
    return {
        hypernode.name: [
            names[number]
            for member in hypernode.members
            if member.is_hypernode == of_hypernodes
            for number in select(member, numbers, nodes)
            if not (of_hypernodes and number == tree.top)
        ]
        for hypernode in tree.hypernodes
    }


# --- members that do not exist -------------------------------------------------------------------------------------------


def _missing(tree: HyperTree, nodes: NodeTable) -> Iterator[Problem]:
    for hypernode in tree.hypernodes:
        yield from _unknown(hypernode, "Node", nodes.number_by_name)
        yield from _unknown(hypernode, "HyperNode", tree.number_by_name)


def _unknown(hypernode: HyperNode, kind: str, known: Mapping[str, int]) -> Iterator[Problem]:
    named = (member.name for member in hypernode.members if member.name and member.is_hypernode == (kind == "HyperNode"))
    unknown = [name for name in named if name not in known]
    if len(unknown) == 1:
        close = get_close_matches(unknown[0], known, n=1, cutoff=0.8)
        hint = f"write {close[0]!r}" if close else "create it"
        yield hypernode.name, f"{kind} {unknown[0]!r} does not exist; {hint}, or remove the member"
    elif unknown:
        yield hypernode.name, f"{kind}s {_listed(unknown)} do not exist; create them, or remove the members"


# --- circles -------------------------------------------------------------------------------------------------------------


def _circle_from(start: str, inner: Members) -> list[str]:
    """Return the shortest way from a HyperNode through its members back to itself; empty when there is none."""
    ways = {start: [start]}
    line = [start]
    for name in line:
        for member in inner[name]:
            if member == start:
                return [*ways[name], start]
            if member not in ways:
                ways[member] = [*ways[name], member]
                line.append(member)
    return []


def _circles(circles: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield each circle once, for its first name."""
    for name, circle in circles.items():
        if len(circle) == 2:
            yield name, "it contains itself; remove the member"
        elif name == min(circle):
            yield name, f"HyperNodes contain each other in a circle ({' > '.join(circle)}); remove one of these members"


# --- members of two HyperNodes -------------------------------------------------------------------------------------------


def _nodes_in_two(tree: HyperTree, inner: Members) -> Iterator[Problem]:
    """Yield nodes that are in two HyperNodes of one tier; that a node is in several tiers is what they are for."""
    for tier in sorted(set(tree.tiers)):
        of_tier = {name: inner[name] for name in inner if tree.tiers[tree.number_by_name[name]] == tier}
        yield from _in_two("Node", of_tier, f" of the same tier {tier}")


def _in_two(kind: str, inner: Members, which: str = "") -> Iterator[Problem]:
    for name, other, shared in _shared(inner):
        is_one = len(shared) == 1
        what = f"{kind} {shared[0]!r} is" if is_one else f"{kind}s {_listed(shared)} are"
        yield name, f"{what} also in HyperNode {other!r}{which}; remove {'it' if is_one else 'them'} from one of the two"


def _shared(inner: Members) -> Iterator[tuple[str, str, list[str]]]:
    """Yield HyperNodes that have members of an earlier one: the later, the earlier, and these members."""
    first: dict[str, str] = {}
    for name, members in inner.items():
        found: dict[str, list[str]] = {}
        for member in members:
            if first.setdefault(member, name) != name:
                found.setdefault(first[member], []).append(member)
        yield from ((name, other, shared) for other, shared in found.items())


# --- tiers ---------------------------------------------------------------------------------------------------------------


def _tiers(tree: HyperTree, inner: Members, circles: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    tiers = {hypernode.name: hypernode.tier for hypernode in tree.hypernodes}
    for name, members in inner.items():
        for member in members:
            if tiers[member] >= tiers[name] and member not in circles.get(name, ()):
                text = f"HyperNode {member!r} has tier {tiers[member]}, which is not below tier {tiers[name]} of this one"
                yield name, f"{text}; write a higher tier here, or a lower one there"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    rest = f" and {more} other{'s' if more > 1 else ''}" if more > 0 else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + rest
