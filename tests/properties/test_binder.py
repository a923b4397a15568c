"""Laws of the binder, also of one that dies between any two writes: all or none, never twice, and nothing is left over."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.binder.gpu_reservations import GpuReservations
from phalanx.controllers.controller import Controller, Key, Result, Try, View, Write
from phalanx.model.kinds import BIND_REQUEST, NODE, POD, Document, Kind
from tests.support import kai_objects as kai
from tests.support.binder_cluster import BindStage

NODES = ("node-0", "node-1", "node-2")
LONG_ENOUGH = 5000.0


class Crashing:
    """A controller that dies after some of its writes at some of its looks, and is started again a while later."""

    def __init__(self, controller: Controller, cuts: list[int]) -> None:
        self._controller, self._cuts = controller, cuts
        self.name, self.watches, self.brings_back = controller.name, controller.watches, controller.brings_back

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        return self._controller.concerns(view, kind, document)

    def reconcile(self, view: View, key: Key) -> Result:
        result = self._controller.reconcile(view, key)
        if not self._cuts or not result.writes:
            return result
        return Result([self._dying(write) for write in result.writes[: self._cuts.pop()]], again=view.now + 1)

    def _dying(self, write: Write) -> Write:
        """Let it die, too, while it writes down a refusal."""
        if not isinstance(write, Try) or not self._cuts:
            return write
        cut = self._cuts.pop()
        return Try(write.write, lambda reason: write.refused(reason)[:cut])


@dataclass(frozen=True)
class Gang:
    """A gang, where its pods shall go, and on which shared GPU."""

    name: str
    minimum: int
    nodes: tuple[str, ...]
    device: str

    def documents(self) -> Sequence[Document]:
        share = {"share": 0.2} if self.device else {"gpus": 1}
        return kai.gang(self.name, tasks=len(self.nodes), min_member=self.minimum, **share)


@st.composite
def gangs(draw: st.DrawFn, name: str) -> Gang:
    device = draw(st.sampled_from(["", *NODES]))
    place = st.just(device) if device else st.sampled_from(NODES)
    nodes = draw(st.lists(place, min_size=1, max_size=4))
    return Gang(name, draw(st.integers(1, len(nodes))), tuple(nodes), device and f"gpu-of-{device}")


Deed = tuple[float, str, str]
pods = st.sampled_from([f"{gang}-{number}" for gang in "ab" for number in range(4)])
moments = st.integers(0, 90).map(float)
kinds = st.sampled_from(["lose node", "delete pod", "tidy", "ask again"])
deeds = st.lists(st.tuples(moments, kinds, st.one_of(pods, st.sampled_from(NODES))), max_size=4)
refusals = st.dictionaries(
    st.one_of(st.sampled_from(NODES), pods.map("default/{}".format)), st.sampled_from([1, 2, 3, 99]), max_size=3
)


def do(stage: BindStage, deed: str, name: str) -> None:
    """Do something to the cluster, if it can be done; a pod that is bound is not taken away."""
    pod = stage.store.find(POD, "default", name)
    if deed == "lose node" and stage.store.find(NODE, "", name) is not None:
        stage.remove_node(name)
    elif deed == "delete pod" and pod is not None and not pod["spec"].get("nodeName"):
        stage.store.delete(POD, "default", name)
    elif deed in ("tidy", "ask again"):
        for request, phase in stage.phases().items():
            if phase == "Failed":
                stage.store.delete(BIND_REQUEST, "default", request)
    if deed == "ask again" and pod is not None and not pod["spec"].get("nodeName") and name not in stage.phases():
        stage.request(pod, NODES[-1])


def played(asked: Sequence[Gang], refused: dict[str, int], happenings: Sequence[Deed], *controllers: Controller) -> BindStage:
    stage = BindStage(*controllers, nodes=len(NODES))
    for name, times in refused.items():
        stage.faults.refuse_binds(name, times)
    for gang in asked:
        stage.ask(gang.documents(), on=gang.nodes, devices=[gang.device] if gang.device else [])
    for moment, deed, name in sorted(happenings):
        stage.run(moment)
        do(stage, deed, name)
    stage.run(LONG_ENOUGH)
    return stage


def check(stage: BindStage, asked: Sequence[Gang]) -> None:
    places = stage.places()
    for gang in asked:
        bound = [name for name in places if name.startswith(f"{gang.name}-")]
        assert not bound or len(bound) >= gang.minimum, f"{gang.name} is half bound"
    assert len(stage.binds) == len(set(stage.binds)), "a pod was bound twice"
    assert "Pending" not in stage.phases().values()
    used = {pod["metadata"]["labels"][kai.DEVICE] for pod in stage.store.within(POD, "default") if is_sharing(pod)}
    assert stage.reservations() == sorted(f"gpu-reservation-{group}" for group in used)
    assert stage.unsettled() == []


def is_sharing(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName")) and kai.DEVICE in pod["metadata"].get("labels", {})


@given(gangs("a"), gangs("b"), refusals, deeds, st.lists(st.integers(0, 6), max_size=12))
@settings(max_examples=150, deadline=None)
def test_no_gang_is_left_half_bound_wherever_the_binder_dies(
    first: Gang, second: Gang, refused: dict[str, int], happenings: list[Deed], cuts: list[int]
) -> None:
    dying = list(cuts)
    stage = played([first, second], refused, happenings, Crashing(Binder(), dying), Crashing(GpuReservations(), dying))
    check(stage, [first, second])


@given(gangs("a"), st.lists(st.integers(0, 6), max_size=20))
@settings(max_examples=60, deadline=None)
def test_crashes_alone_keep_nobody_from_being_bound(gang: Gang, cuts: list[int]) -> None:
    stage = played([gang], {}, [], Crashing(Binder(), list(cuts)))
    assert stage.places() == {f"a-{number}": node for number, node in enumerate(gang.nodes)}
    assert set(stage.phases().values()) == {"Succeeded"}


def test_the_law_of_all_or_none_can_be_broken() -> None:
    """A stage on which pods are bound one by one breaks it: what is checked above can fail."""
    stage = BindStage(nodes=1)
    stage.ask(kai.gang("a", tasks=2), on=[])
    stage.store.bind("default", "a-0", "node-0")
    with pytest.raises(AssertionError, match="half bound"):
        check(stage, [Gang("a", 2, ("node-0", "node-0"), "")])
