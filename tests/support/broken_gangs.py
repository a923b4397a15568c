"""Small clusters of gangs that lost members, as Kubernetes objects: some finish, some are broken, some are completed again.

Every task asks for one cpu, so room is a number of places. A seed repeats a cluster. The clock stands at `NOW`.
"""

from collections.abc import Iterator
from random import Random

from phalanx.model.moment import moment_text
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai

NOW = 1_800_000_000.0
AGES = (0, 5, 29, 30, 59, 60, 61, 300)
"""Seconds that have passed since members were lost."""
GRACES = {None: 60.0, "30s": 30.0, "120": 120.0, "0": 0.0, "1m30s": 90.0, "never": float("inf"), "-1": float("inf")}
"""What groups say, and what it means in the profile `phalanx`."""
GRACE, SIZE, PART = "phalanx.dev/staleness-grace", 2, "part"
EQUAL = {
    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "equal"}, "value": 1, "globalDefault": True,
}  # fmt: skip
"""Nobody is more important than anybody else, whatever dialect it speaks."""
FATES = ("Running", "Running", "Running", "Failed", "Leaving", "Succeeded", "Pending")


def stamp(age: float) -> str:
    """Return a time some seconds ago."""
    return moment_text(int(NOW - age))


def ward(chance: Random, *, gangs: int = 3, rivals: int = 2) -> list[Document]:
    """Return nodes, gangs that may have lost members, and gangs that wait."""
    nodes = {f"node-{number}": chance.randint(2, 5) for number in range(chance.randint(2, 3))}
    places = [name for name, cpus in nodes.items() for _ in range(cpus)]
    chance.shuffle(places)
    found = [EQUAL, *(build.node(name, labels={}, spec={}, cpu=cpus) for name, cpus in nodes.items())]
    for number in range(gangs):
        found += _gang(chance, f"gang-{number}", places)
    for number in range(rivals):
        found += build.gang(f"rival-{number}", tasks=chance.randint(1, 3), cpu=1)
    return found


def _gang(chance: Random, name: str, places: list[str]) -> Iterator[Document]:
    count = chance.randint(1, 5)
    pods = [_pod(chance, f"{name}-{number}", name, places) for number in range(count)]
    kind = chance.choice(("plain", "roles", "parts", "leaves"))
    group = build.pod_group(name, min_member=chance.randint(1, count), phase="Running")
    if kind == "roles":
        _give_roles(group, pods)
    if kind == "parts":
        _give_parts(chance, group, pods)
    if kind == "leaves":
        group = _leaves(name, pods)
    said = chance.choice(tuple(GRACES))
    group["metadata"]["annotations"] = {} if said is None else {GRACE: said}
    yield from build.bound_for(group, *pods)


def _pod(chance: Random, name: str, group: str, places: list[str]) -> Document:
    """Return a member and what became of it; without a place it waits, made when somebody was lost."""
    pod, age = build.pod(name, group=group, on="", spec={}, cpu=1), chance.choice(AGES)
    fate = chance.choice(FATES) if places else "Pending"
    pod["metadata"]["creationTimestamp"] = stamp(age if fate == "Pending" else 1000)
    if chance.random() < 0.05:
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    if fate == "Pending":
        return pod
    pod["spec"]["nodeName"] = places[-1] if fate in ("Failed", "Succeeded") else places.pop()
    pod["status"] = {"phase": "Running" if fate == "Leaving" else fate}
    if fate == "Leaving":
        pod["metadata"]["deletionTimestamp"] = stamp(age)
    if fate == "Failed":
        pod["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"finishedAt": stamp(age)}}}]
    return pod


def _give_roles(group: Document, pods: list[Document]) -> None:
    """Make the first member the chief, who is needed."""
    for number, pod in enumerate(pods):
        build.in_group(group["metadata"]["name"], pod, role="worker" if number else "chief")
    group["spec"]["minTaskMember"] = {"chief": 1, "worker": group["spec"]["minMember"] - 1}


def _give_parts(chance: Random, group: Document, pods: list[Document]) -> None:
    """Make pairs of the members; some gangs need one pair or two, some any members at all."""
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {PART: str(number // SIZE)}
    policy = {"name": PART, "subGroupSize": SIZE, "minSubGroups": chance.randint(0, 2), "matchLabelKeys": [PART]}
    group["spec"]["subGroupPolicy"] = [policy]


def _leaves(name: str, pods: list[Document]) -> Document:
    """Return a group of KAI's whose members belong to one of two leaves; both are needed as a whole."""
    sizes = {"even": len(pods[::2]), "odd": len(pods[1::2])}
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {kai.SUBGROUP: "odd" if number % 2 else "even"}
        pod["metadata"]["annotations"][kai.GROUP] = name
    leaves = [{"name": leaf, "minMember": size} for leaf, size in sizes.items() if size]
    return kai.pod_group(name, queue="default", min_member=len(pods), subGroups=leaves)
