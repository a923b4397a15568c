"""Laws of healing: gangs that lost members are completed, or evicted after their grace and never before; those that finish stay.

The laws are judged from the objects, without the engine. A failure names the seed of its cluster.
"""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from phalanx.config.policies import policy_of_profile
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support import broken_gangs as wards
from tests.support import kai_objects as kai
from tests.support.broken_gangs import NOW, PART, SIZE

SEEDS = st.integers(0, 2**40)
POLICY = policy_of_profile("phalanx")
PRESENT = ("Succeeded", "Binding", "Allocated", "Pipelined")
"""Who has a place without having run before, or needs none."""
Part = tuple[list[Document], int]
"""Members and how many of them are needed."""


@dataclass(frozen=True, slots=True)
class Patient:
    """A gang as its objects describe it, and what a cycle did for it."""

    group: Document
    pods: list[Document]
    answer: Any

    @property
    def grace(self) -> float:
        return wards.GRACES[self.group["metadata"]["annotations"].get(wards.GRACE)]

    @property
    def is_protected(self) -> bool:
        return any("volcano.sh/preemptable" in pod["metadata"]["annotations"] for pod in self.running(self.pods))

    def evicted(self, pods: list[Document]) -> list[Document]:
        return [pod for pod in pods if key(pod) in self.answer["evictions"]]

    def running(self, pods: list[Document]) -> list[Document]:
        return [pod for pod in pods if pod["status"]["phase"] == "Running" and not is_leaving(pod)]

    def present(self, pods: list[Document]) -> int:
        """Count who runs, has succeeded, or was given a place or pipelined."""
        return len(self.running(pods)) + sum(self.answer["tasks"][key(pod)]["status"] in PRESENT for pod in pods)

    def vital(self) -> list[Part]:
        """Return the minima without which the whole gang does nothing; of sub-groups only those that no other can replace."""
        spec, parts = self.group["spec"], [(self.pods, self.group["spec"]["minMember"])]
        for role, minimum in spec.get("minTaskMember", {}).items():
            parts.append(([pod for pod in self.pods if pod["metadata"]["annotations"]["volcano.sh/task-spec"] == role], minimum))
        for leaf in spec.get("subGroups", ()):
            parts.append(([pod for pod in self.pods if pod["metadata"]["labels"][kai.SUBGROUP] == leaf["name"]], leaf["minMember"]))
        return parts

    def pairs(self) -> list[list[Document]]:
        found: dict[str, list[Document]] = {}
        for pod in self.pods if "subGroupPolicy" in self.group["spec"] else ():
            found.setdefault(pod["metadata"]["labels"][PART], []).append(pod)
        return list(found.values())

    def broken_pairs(self) -> list[list[Document]]:
        return [pair for pair in self.pairs() if self.running(pair) and self.present(pair) < SIZE]

    def lacks_pairs(self) -> bool:
        needed: int = self.group["spec"].get("subGroupPolicy", [{"minSubGroups": 0}])[0]["minSubGroups"]
        return sum(self.present(pair) >= SIZE for pair in self.pairs()) < needed

    def is_whole(self) -> bool:
        return all(self.present(pods) >= minimum for pods, minimum in self.vital()) and not self.lacks_pairs()

    def is_due(self, pods: list[Document], minimum: int) -> bool:
        """Tell whether the loss that made the part short was long enough ago, and nobody waits who came later."""
        missing = minimum - self.present(pods)
        waiting = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
        if any(age(pod["metadata"]["creationTimestamp"]) < self.grace for pod in waiting):
            return False
        ages = sorted(map(age, losses(pods)))
        return missing > 0 and (self.grace == 0 or (missing <= len(ages) and ages[missing - 1] >= self.grace))

    def parts(self) -> list[Part]:
        """Return all minima that may break a part of the gang; of a gang that needs more pairs any pair may be one too few."""
        pairs = self.pairs() if self.lacks_pairs() else self.broken_pairs()
        return [*self.vital(), *((pair, SIZE) for pair in pairs)]


def key(pod: Document) -> str:
    return f"default/{pod['metadata']['name']}"


def is_leaving(pod: Document) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def losses(pods: list[Document]) -> list[str]:
    stamps = [pod["metadata"]["deletionTimestamp"] for pod in pods if is_leaving(pod)]
    failed = [pod["status"]["containerStatuses"][0] for pod in pods if pod["status"]["phase"] == "Failed"]
    return stamps + [str(entry["state"]["terminated"]["finishedAt"]) for entry in failed]


def age(time: str) -> float:
    return next(float(seconds) for seconds in (*wards.AGES, 1000) if wards.stamp(seconds) == time)


def treat(seed: int, *, gangs: int = 3, rivals: int = 2) -> list[Patient]:
    objects = wards.ward(Random(seed), gangs=gangs, rivals=rivals)
    answer = Cluster(POLICY).submit(objects).run_cycle(now=NOW).answer
    groups = [item for item in objects if item["kind"] == "PodGroup" and item["metadata"]["name"].startswith("gang")]
    return [Patient(group, members(group, objects), answer) for group in groups]


def members(group: Document, objects: list[Document]) -> list[Document]:
    name = group["metadata"]["name"]
    pods = [item for item in objects if item["kind"] == "Pod"]
    return [pod for pod in pods if pod["metadata"]["name"].rpartition("-")[0] == name]


@settings(deadline=None, max_examples=600)
@given(SEEDS)
@example(174100536)  # a sub-group waits for more tasks than there are
def test_a_gang_that_has_all_it_needs_or_finishes_is_never_evicted(seed: int) -> None:
    for patient in treat(seed):
        if patient.is_whole() and not patient.broken_pairs():
            assert patient.evicted(patient.pods) == []


@settings(deadline=None, max_examples=600)
@given(SEEDS)
def test_nobody_is_evicted_before_the_grace_of_the_gang_is_over(seed: int) -> None:
    for patient in treat(seed):
        if patient.evicted(patient.pods):
            is_due = any(patient.is_due(pods, minimum) for pods, minimum in patient.parts())
            assert is_due or (patient.lacks_pairs() and patient.grace == 0)


@settings(deadline=None, max_examples=600)
@given(SEEDS)
def test_a_gang_that_nobody_can_complete_is_evicted_as_a_whole_after_its_grace(seed: int) -> None:
    for patient in treat(seed):
        is_due = any(patient.is_due(pods, minimum) for pods, minimum in patient.vital())
        if is_due and not patient.is_protected:
            assert patient.evicted(patient.pods) == patient.running(patient.pods)


@settings(deadline=None, max_examples=600)
@given(SEEDS)
def test_of_a_whole_gang_only_a_broken_sub_group_goes(seed: int) -> None:
    for patient in treat(seed):
        due = [pair for pair in patient.broken_pairs() if patient.is_due(pair, SIZE)]
        if not due or not patient.is_whole() or patient.is_protected:
            continue
        gone = [pod for pair in due for pod in patient.running(pair)]
        spare = patient.present(patient.pods) - patient.group["spec"]["minMember"]
        assert patient.evicted(patient.pods) == (gone if len(gone) <= spare else patient.running(patient.pods))


@settings(deadline=None, max_examples=400)
@given(SEEDS)
def test_of_a_gang_with_a_protected_pod_nobody_goes_unless_the_gang_keeps_that_pod(seed: int) -> None:
    for patient in treat(seed):
        gone = patient.evicted(patient.pods)
        assert not any("volcano.sh/preemptable" in pod["metadata"]["annotations"] for pod in gone)
        if patient.is_protected and not patient.is_whole():
            assert gone == []


@settings(deadline=None, max_examples=400)
@given(SEEDS)
def test_room_for_what_a_gang_lacks_is_given_to_it_before_others_start(seed: int) -> None:
    (patient,) = treat(seed, gangs=1, rivals=3)
    running, waiting = patient.running(patient.pods), [pod for pod in patient.pods if pod["status"]["phase"] == "Pending"]
    if not running or {"subGroups", "subGroupPolicy"} & set(patient.group["spec"]):
        return
    there = [*running, *(pod for pod in patient.pods if pod["status"]["phase"] == "Succeeded")]
    lacking = [(pods, max(minimum - sum(pod in there for pod in pods), 0)) for pods, minimum in patient.vital()]
    needed = max(lacking[0][1], sum(count for _, count in lacking[1:]))
    nodes = [item for item in wards.ward(Random(seed), gangs=1, rivals=3) if item["kind"] == "Node"]
    places = sum(node["status"]["allocatable"]["cpu"] for node in nodes) - len(running)
    if needed <= places and all(count <= sum(pod in waiting for pod in pods) for pods, count in lacking):
        assert patient.is_whole()


class Rounds:
    """Session after session, half a minute apart: who was evicted or left comes back and waits, who was pipelined runs."""

    def __init__(self, seed: int) -> None:
        self._documents = {(item["kind"], item["metadata"]["name"]): item for item in wards.ward(Random(seed))}
        self.healed: list[str] = []

    def run(self, sessions: int) -> None:
        for number in range(sessions):
            cluster = Cluster(POLICY).submit(self._documents.values())
            cycle = cluster.run_cycle(now=NOW + 30 * number)
            self.healed += [pod for pod, entry in cycle.answer["evictions"].items() if entry["action"] == "heal"]
            self._carry_out(cycle, number)

    def _carry_out(self, cycle: Cycle, number: int) -> None:
        for (kind, name), item in list(self._documents.items()):
            if kind == "PodGroup":
                found = cycle.answer["groups"][f"default/{name}"]
                self._documents[kind, name] = item | {"status": {"phase": found["phase"], "conditions": found["conditions"]}}
            if kind == "Pod" and (is_leaving(item) or key(item) in cycle.answer["evictions"]):
                self._put(item, {"phase": "Pending"}, "", creationTimestamp=wards.stamp(-30 * number))
        for pod, node in {**cycle.answer["binds"], **cycle.answer["pipelined"]}.items():
            self._put(self._documents["Pod", pod.removeprefix("default/")], {"phase": "Running"}, node)

    def _put(self, pod: Document, status: Document, node: str, **more: str) -> None:
        meta = {name: value for name, value in pod["metadata"].items() if name != "deletionTimestamp"} | more
        spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"} | ({"nodeName": node} if node else {})
        self._documents["Pod", meta["name"]] = pod | {"metadata": meta, "spec": spec, "status": status}


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_nobody_is_healed_twice_and_healing_comes_to_an_end(seed: int) -> None:
    rounds = Rounds(seed)
    rounds.run(20)
    assert max(Counter(rounds.healed).values(), default=0) <= 1
    healed = len(rounds.healed)
    rounds.run(1)
    assert len(rounds.healed) == healed


def test_a_gang_of_which_no_pod_tells_when_it_broke_is_evicted_once_its_condition_is_old_enough() -> None:
    cluster = build.cluster(nodes=1, policy=POLICY, cpu=2)
    pods = [build.pod(f"train-{number}", group="train", on="node-0", cpu=1) for number in range(2)]
    cluster.submit(build.bound_for(build.pod_group("train", min_member=3, phase="Running"), *pods))
    gone = []
    for number in range(3):
        cycle = cluster.run_cycle(now=NOW + 40 * number)
        gone.append(sorted(cycle.answer["evictions"]))
        cluster.carry_out(cycle)
    assert gone == [[], [], ["default/train-0", "default/train-1"]]
