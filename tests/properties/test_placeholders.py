"""Laws of placeholders: a crash between two writes changes nothing in the end, and nobody has room twice."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import Controller, Key, Result, View
from phalanx.controllers.placeholders import is_placeholder
from phalanx.controllers.yunikorn import YuniKornController
from phalanx.dialects.pods import REPLACES
from phalanx.model.kinds import POD, Document
from phalanx.model.watch_event import WatchEvent
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds

POLICY = policy_of_profile("phalanx")
NODES, CPUS, END = 3, 2, 300.0


class Crashing(YuniKornController):
    """Dies after some of its writes at some of its looks, and is started again a second later."""

    def __init__(self, cuts: Sequence[int]) -> None:
        super().__init__()
        self._cuts = list(cuts)

    def reconcile(self, view: View, key: Key) -> Result:
        result = super().reconcile(view, key)
        if not self._cuts or not result.writes:
            return result
        return Result(result.writes[: self._cuts.pop()], again=view.now + 1)


@dataclass(frozen=True)
class Trace:
    """An application, when its pods come and go, and what else there is."""

    minimum: int
    style: str
    busy_nodes: int
    executors: tuple[int, ...]
    """When each comes."""
    leaves: int | None
    """When the driver is deleted."""


courses = st.builds(
    Trace, minimum=st.integers(1, 6), style=st.sampled_from(["Soft", "Hard"]), busy_nodes=st.integers(0, 2),
    executors=st.lists(st.integers(0, 100), max_size=7).map(tuple), leaves=st.none() | st.integers(1, 150),
)  # fmt: skip


def played(trace: Trace, controller: Controller) -> World:
    found = worlds.world(nodes=NODES, cpu=CPUS, policy=POLICY, controllers=(controller,))
    busy = [build.pod(f"busy-{number}", on=f"node-{number}", cpu=CPUS) for number in range(trace.busy_nodes)]
    found.load(busy)
    policy = f"placeholderTimeoutInSeconds=60 gangSchedulingStyle={trace.style}"
    worlds.submit(found, made.application("spark", {"driver": 1, "executor": trace.minimum}, policy=policy, cpu=1)[:1])
    for number, moment in enumerate(trace.executors):
        worlds.submit(found, [made.application_pod(f"exec-{number}", "spark", "executor", cpu=1)], at=moment)
    worlds.submit(found, [made.application_pod(f"greedy-{number}", "greedy", "", cpu=1) for number in range(6)], at=200)
    if trace.leaves is not None:
        found.plan(trace.leaves, lambda: found.store.delete(POD, "default", "spark-driver-0"))
    return found


def members(found: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in found.store.items(POD) if not is_placeholder(pod)}


def placeholders(found: World) -> list[Document]:
    return [pod for pod in found.store.items(POD) if is_placeholder(pod)]


@settings(deadline=None, max_examples=25)
@given(courses, st.lists(st.integers(0, 3), max_size=6))
def test_a_crash_between_two_writes_changes_nothing_in_the_end(trace: Trace, cuts: list[int]) -> None:
    crashed, usual = played(trace, Crashing(cuts)), played(trace, YuniKornController())
    for found in (crashed, usual):
        worlds.run(found, END)
        assert found.problems == []
    assert members(crashed) == members(usual)
    assert placeholders(crashed) == placeholders(usual) == []
    assert not YuniKornController().reconcile(crashed.store, Key("default", "spark")).writes


@settings(deadline=None, max_examples=25)
@given(courses, st.lists(st.integers(0, 3), max_size=6))
def test_nodes_are_never_too_full_and_no_placeholder_is_replaced_twice(trace: Trace, cuts: list[int]) -> None:
    found = played(trace, Crashing(cuts))
    found.store.listen(lambda event: the_books_are_right(event, found))
    worlds.run(found, END)
    assert found.problems == []
    assert found.recorder.evictions == []


def the_books_are_right(event: WatchEvent, found: World) -> None:
    pods = list(found.store.items(POD))
    running = Counter(pod["spec"].get("nodeName", "") for pod in pods if pod["status"]["phase"] in ("Pending", "Running"))
    sizes = {name: count for name, count in running.items() if name and not is_busy(name, pods)}
    assert all(count <= CPUS for count in sizes.values())
    replaced = Counter(pod["metadata"].get("annotations", {}).get(REPLACES, "") for pod in pods)
    assert all(count == 1 for name, count in replaced.items() if name)


def is_busy(node: str, pods: Iterable[Document]) -> bool:
    return f"busy-{node.rpartition('-')[2]}" in {pod["metadata"]["name"] for pod in pods}
