"""A gang that is said in another dialect and read again is the same gang, except for what was said to be lost."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.dialects.convert import DIALECTS, converted
from phalanx.dialects.convert.neutral_gangs import NeutralGang, sort_out
from phalanx.testing import build
from phalanx.testing.build import Document

FACT_BY_FIELD = {
    "minTaskMember": {"roles", "played"}, "minMember": {"minimum"}, "queue": {"queue"}, "networkTopology": {"topology"},
    "minResources": {"minResources"}, "preemptability": {"preemptable"}, "members": {"played"},
    "priorityClassName": {"priority"},
}  # fmt: skip
"""What may differ where a field is lost."""


def some_gang(random: Random) -> list[Document]:
    """Return a Volcano gang with whatever one may say of it."""
    roles = {name: random.randint(1, 3) for name in random.sample(["master", "worker", "eval"], random.randint(0, 3))}
    pods = [(role, number) for role, count in roles.items() for number in range(count)] or [
        ("", n) for n in range(random.randint(1, 4))
    ]
    minima = {role: random.randint(1, count) for role, count in roles.items() if random.random() < 0.8}
    spec: dict[str, Any] = {"minTaskMember": minima} if minima else {}
    if random.random() < 0.5:
        spec["queue"] = "research"
    if random.random() < 0.3:
        spec["minResources"] = {"cpu": "1500m", "memory": "1Gi"}
    if random.random() < 0.3:
        spec["networkTopology"] = {"mode": random.choice(["hard", "soft"]), "highestTierAllowed": random.randint(1, 3)}
    if random.random() < 0.3:
        spec["priorityClassName"] = "high"
    group = build.pod_group("train", min_member=random.randint(0, len(pods)), **spec)
    if random.random() < 0.3:
        group["metadata"]["annotations"] = {"volcano.sh/preemptable": random.choice(["true", "false"])}
    own = {"priorityClassName": random.choice(["high", "low"])} if "priorityClassName" in spec and random.random() < 0.5 else {}
    members = [build.pod(f"train-{role}-{number}", cpu=1, spec=dict(own)) for role, number in pods]
    return [group, *(build.in_group("train", pod, role=role) for pod, (role, _) in zip(members, pods, strict=True))]


def facts(group: NeutralGang) -> dict[str, Any]:
    return {
        "name": (group.namespace, group.name), "queue": group.queue, "minimum": group.min_member, "roles": dict(group.roles),
        "played": {str(member.document["metadata"]["name"]): _part(group, member.role) for member in group.members},
        "topology": group.topology, "priority": group.priority_class, "minResources": group.min_resources,
        "preemptable": group.is_preemptable,
    }  # fmt: skip


def _part(group: NeutralGang, role: str) -> str:
    """Return a role that counts for something."""
    return role if role in group.roles else ""


def the_gang(documents: list[Document]) -> dict[str, Any]:
    (group,) = sort_out(documents).groups
    return facts(group)


def differing(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**40))
def test_only_what_is_said_to_be_lost_differs(dialect: str, seed: int) -> None:
    before = some_gang(Random(seed))
    there = converted(before, dialect)
    excused = set().union(*(FACT_BY_FIELD[item.field] for item in there.lost))
    assert differing(the_gang(before), the_gang(there.objects)) <= excused


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**40))
def test_there_and_back_again_nothing_more_is_lost(dialect: str, seed: int) -> None:
    there = converted(some_gang(Random(seed)), dialect)
    back = converted(there.objects, "volcano")
    again = converted(back.objects, dialect)
    assert back.lost == []
    assert the_gang(back.objects) == the_gang(there.objects)
    assert again.objects == there.objects


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**40))
def test_the_same_dialect_loses_nothing(seed: int) -> None:
    before = some_gang(Random(seed))
    same = converted(before, "volcano")
    assert same.lost == []
    assert the_gang(same.objects) == the_gang(before)
