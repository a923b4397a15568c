"""Volume filters: attach limits, zones, binding, and what a session reserves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.dialects.cluster import ObjectCluster
from phalanx.kubernetes.volumes import OLD_ZONE, REGION, ZONE, VolumeBook
from phalanx.model.gang import Gang
from phalanx.model.node import Node
from phalanx.model.selectors import Labels, LabelSelector, NodeSelectorTerm, Requirement
from phalanx.model.shape import Shape
from phalanx.model.storage import StorageCapacity, StorageClass, Volume, VolumeClaim, VolumeLimits
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.node_answers import Layer
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.session.trace import Trace
from phalanx.state.cluster import ClusterState
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.snapshot import Surroundings
from phalanx.testing import build

AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
BIND = "node(s) didn't find available persistent volumes to bind"
SPACE = "node(s) did not have enough free storage"
NO_PV = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
LIMIT = "node(s) exceed max volume count"
EVERYWHERE = slice(None)

NOW = StorageClass("now", provisioner="disk.example.com")
LATER = StorageClass("later", provisioner="disk.example.com", waits_for_consumer=True)
LOCAL = StorageClass("local", provisioner="kubernetes.io/no-provisioner", waits_for_consumer=True)


def on(*names: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((Requirement("host", "In", names),)),)


def claim(name: str, **settings: object) -> VolumeClaim:
    return replace(VolumeClaim(f"default/{name}", storage_class="local"), **settings)  # type: ignore[arg-type]  # by name


def bound(name: str, volume: str) -> VolumeClaim:
    return claim(name, volume=volume, is_bound=True)


def surroundings(*things: StorageClass | Volume | VolumeClaim | VolumeLimits | StorageCapacity) -> Surroundings:
    return Surroundings(
        storage_classes={each.name: each for each in (NOW, LATER, LOCAL, *things) if isinstance(each, StorageClass)},
        volumes={each.name: each for each in things if isinstance(each, Volume)},
        volume_claims={each.key: each for each in things if isinstance(each, VolumeClaim)},
        volume_limits={each.node: each for each in things if isinstance(each, VolumeLimits)},
        storage_capacities={str(place): each for place, each in enumerate(things) if isinstance(each, StorageCapacity)},
        capacity_drivers=frozenset({"counted.example.com"}),
    )


def book_on(world: Surroundings, nodes: Mapping[str, Labels] | Sequence[str] = "abc", tasks: Iterable[Task] = ()) -> VolumeBook:
    state = ClusterState()
    for name in nodes:
        labels = nodes[name] if isinstance(nodes, Mapping) else {}
        state.put_node(Node(name, labels={"host": name, **labels}))
    for task in tasks:
        state.put_task(task)
    state.tables.note(**{each.name: getattr(world, each.name) for each in fields(world)})
    return VolumeBook(Session(state.snapshot(0.0), Policy(actions=(), tiers=()), {}, Trace()))


def wanting(*claims: str) -> Shape:
    return Shape(volume_claims=claims)


def task_of(name: str, shape: Shape, node: str = "") -> Task:
    status = Status.RUNNING if node else Status.PENDING
    return Task(TaskKey(f"default/{name}"), name, shape, node=node, status=status)


def operation(name: str, shape: Shape, node: int, kind: OperationKind = OperationKind.ALLOCATE) -> Operation:
    gang = GangState(Gang(GangKey("default/gang")), ())
    return Operation(kind, [TaskState(task_of(name, shape), gang, -1)], [node], [Status.PENDING])


def refusals(layers: list[Layer], nodes: Sequence[str] = "abc") -> dict[str, str]:
    found: dict[str, str] = {}
    for layer in layers:
        found |= {nodes[number]: layer.reason for number in np.flatnonzero(layer.refused).tolist()}
    return found


def binding(book: VolumeBook, *claims: str) -> dict[str, str]:
    return refusals(book.binding_layers(wanting(*claims), EVERYWHERE))


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (surroundings(), 'persistentvolumeclaim "data" not found'),
        (surroundings(claim("data", storage_class=None)), "PersistentVolumeClaim had no pv name and storageClass name"),
        (surroundings(claim("data", storage_class="now")), "PersistentVolume had no name"),
        (surroundings(claim("data", storage_class="gone")), 'storageclass.storage.k8s.io "gone" not found'),
        (surroundings(bound("data", "disk")), 'persistentvolume "disk" not found'),
    ],
)
def test_a_claim_without_a_known_zone_is_refused_for_every_node(world: Surroundings, message: str) -> None:
    verdict = book_on(world).zone_prefilter(wanting("data"))
    assert (verdict.ok, verdict.plugin, verdict.message) == (False, "predicates", message)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (surroundings(), 'persistentvolumeclaim "data" not found'),
        (
            surroundings(claim("data", is_lost=True, volume="disk")),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"',
        ),
        (surroundings(claim("data", is_deleting=True)), 'persistentvolumeclaim "data" is being deleted'),
        (surroundings(claim("data", storage_class="now")), "pod has unbound immediate PersistentVolumeClaims"),
        (surroundings(claim("data", volume="disk")), "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_a_claim_that_cannot_be_bound_by_a_scheduler_is_refused(world: Surroundings, message: str) -> None:
    verdict = book_on(world).binding_prefilter(wanting("data"))
    assert (verdict.ok, verdict.message) == (False, message)


def test_delayed_and_bound_claims_pass_both_prefilters() -> None:
    book = book_on(surroundings(claim("new"), bound("old", "disk"), Volume("disk")))
    assert book.zone_prefilter(wanting("new", "old")).ok
    assert book.binding_prefilter(wanting("new", "old")).ok


def test_claims_of_another_namespace_are_not_found() -> None:
    book = book_on(surroundings(bound("data", "disk"), Volume("disk")))
    assert not book.zone_prefilter(Shape(namespace="research", volume_claims=("data",))).ok


def test_a_shape_without_claims_is_never_refused() -> None:
    book = book_on(surroundings())
    assert not book.is_used
    assert book.zone_prefilter(Shape()).ok
    assert book.binding_prefilter(Shape()).ok
    for layers in (book.limit_layers, book.zone_layers, book.binding_layers):
        assert layers(Shape(), EVERYWHERE) == []


def disk(name: str, **settings: object) -> Volume:
    return replace(Volume(name, csi_driver="csi", csi_handle=name), **settings)  # type: ignore[arg-type]  # by name


def limits(node: str, count: int | None, *attached: str) -> VolumeLimits:
    return VolumeLimits(node, {"csi": count}, frozenset(("csi", handle) for handle in attached))


def test_a_node_at_its_limit_refuses_one_more_volume_but_not_one_it_has() -> None:
    world = surroundings(disk("x"), disk("y"), bound("cx", "x"), bound("cy", "y"), limits("a", 1), limits("b", None))
    book = book_on(world, tasks=[task_of("old", wanting("cx"), node="a")])
    assert refusals(book.limit_layers(wanting("cy"), EVERYWHERE)) == {"a": LIMIT}
    assert book.limit_layers(wanting("cx"), EVERYWHERE) == []
    assert not book.limit_layers(wanting("cy"), EVERYWHERE)[0].is_final


def test_volumes_of_the_new_task_count_together_and_each_once() -> None:
    world = surroundings(disk("x"), disk("y"), bound("cx", "x"), bound("cy", "y"), bound("again", "x"), limits("a", 1))
    book = book_on(world)
    assert refusals(book.limit_layers(wanting("cx", "cy"), EVERYWHERE)) == {"a": LIMIT}
    assert book.limit_layers(wanting("cx", "again"), EVERYWHERE) == []


def test_an_unbound_claim_counts_for_the_driver_of_its_class() -> None:
    world = surroundings(claim("new", storage_class="later"), VolumeLimits("a", {"disk.example.com": 0}))
    assert refusals(book_on(world).limit_layers(wanting("new"), EVERYWHERE)) == {"a": LIMIT}


def test_a_volume_that_is_attached_without_a_task_counts() -> None:
    world = surroundings(disk("x"), bound("cx", "x"), limits("a", 1, "other"), limits("b", 1, "x"), limits("c", 1))
    assert refusals(book_on(world).limit_layers(wanting("cx"), EVERYWHERE)) == {"a": LIMIT}


def test_limits_follow_placements_and_evictions_and_their_undoing() -> None:
    world = surroundings(disk("x"), disk("y"), bound("cx", "x"), bound("cy", "y"), limits("a", 1))
    book = book_on(world, nodes="a")
    place, evict = operation("t", wanting("cx"), 0), operation("t", wanting("cx"), 0, OperationKind.EVICT)
    full: list[bool] = []
    for change, undone in ((place, False), (evict, False), (evict, True), (place, True)):
        book.changed(change, undone)
        full.append(bool(book.limit_layers(wanting("cy"), EVERYWHERE)))
    assert full == [True, False, True, False]


ZONES = {"a": {ZONE: "east"}, "b": {ZONE: "west"}, "c": {}}


def zones(labels: Labels, nodes: Mapping[str, Labels]) -> dict[str, str]:
    book = book_on(surroundings(Volume("disk", labels=labels), bound("data", "disk")), nodes)
    layers = book.zone_layers(wanting("data"), EVERYWHERE)
    assert all(layer.is_final for layer in layers)
    return refusals(layers, sorted(nodes))


def test_a_volume_keeps_a_task_in_its_zone_but_nodes_without_zone_take_any() -> None:
    assert zones({ZONE: "east"}, ZONES) == {"b": "node(s) had no available volume zone"}


def test_a_volume_may_span_zones() -> None:
    assert zones({ZONE: "west__east"}, ZONES) == {}


def test_an_old_zone_label_of_a_volume_matches_the_new_one_of_a_node() -> None:
    assert list(zones({OLD_ZONE: "west"}, ZONES)) == ["a"]


def test_a_node_with_a_zone_but_without_region_refuses_a_regional_volume() -> None:
    assert list(zones({REGION: "north"}, ZONES)) == ["a", "b"]


def test_a_zone_label_that_makes_no_sense_is_ignored() -> None:
    assert zones({ZONE: "east__"}, ZONES) == {}


def test_a_bound_claim_goes_where_its_volume_is() -> None:
    book = book_on(surroundings(Volume("disk", node_terms=on("a", "b")), bound("data", "disk")))
    layers = book.binding_layers(wanting("data"), EVERYWHERE)
    assert refusals(layers) == {"c": AFFINITY}
    assert layers[0].is_final


def test_layers_have_the_length_of_the_selection() -> None:
    book = book_on(surroundings(Volume("disk", node_terms=on("a")), bound("data", "disk")))
    (layer,) = book.binding_layers(wanting("data"), np.array([0, 2]))
    assert layer.refused.tolist() == [False, True]


def test_a_bound_claim_without_its_volume_is_refused_where_no_earlier_claim_is() -> None:
    book = book_on(surroundings(Volume("disk", node_terms=on("a")), bound("data", "disk"), bound("logs", "gone")))
    assert binding(book, "data", "logs") == {"a": NO_PV, "b": AFFINITY, "c": AFFINITY}


def test_a_volume_bound_to_a_node_by_name_instead_of_label_matches_nowhere() -> None:
    by_name = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("a",)),)),)
    book = book_on(surroundings(Volume("disk", node_terms=by_name), bound("data", "disk")))
    assert list(binding(book, "data")) == ["a", "b", "c"]


def test_several_reasons_of_one_node_are_one_text_in_fixed_order() -> None:
    book = book_on(surroundings(Volume("disk", node_terms=on("a")), bound("data", "disk"), claim("new")))
    assert binding(book, "new", "data") == {"a": BIND, "b": f"{AFFINITY}, {BIND}", "c": f"{AFFINITY}, {BIND}"}


def test_a_claim_already_sent_to_a_node_goes_there_only() -> None:
    book = book_on(surroundings(claim("new", storage_class="later", selected_node="b")))
    assert binding(book, "new") == {"a": BIND, "c": BIND}


def local(name: str, size: int, node: str = "", **settings: object) -> Volume:
    volume = Volume(name, "local", size, node_terms=on(node) if node else None)
    return replace(volume, **settings)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("volume", "wanted"),
    [
        (local("v", 5), claim("new", request_bytes=6)),
        (local("v", 5, phase="Released"), claim("new")),
        (local("v", 5, claimed_by="default/other"), claim("new")),
        (local("v", 5, volume_mode="Block"), claim("new")),
        (local("v", 5, is_deleting=True), claim("new")),
        (
            local("v", 5, access_modes=frozenset({"ReadOnlyMany"})),
            claim("new", access_modes=frozenset({"ReadWriteOnce"})),
        ),
        (local("v", 5), claim("new", attributes_class="fast")),
        (local("v", 5), claim("new", selector=LabelSelector().plus({"tier": "gold"}))),
        (local("v", 5, storage_class="later"), claim("new")),
    ],
)
def test_a_volume_that_does_not_suit_is_not_bound(volume: Volume, wanted: VolumeClaim) -> None:
    assert binding(book_on(surroundings(volume, wanted)), "new") == {"a": BIND, "b": BIND, "c": BIND}


def test_two_claims_need_two_volumes_on_the_same_node() -> None:
    volumes = [local("a1", 5, "a"), local("a2", 5, "a"), local("b1", 5, "b")]
    book = book_on(surroundings(*volumes, claim("x", request_bytes=1), claim("y", request_bytes=2)))
    assert binding(book, "x", "y") == {"b": BIND, "c": BIND}


def test_the_smaller_claim_takes_the_smaller_volume_whatever_the_order() -> None:
    book = book_on(surroundings(local("small", 2), local("big", 9), claim("x", request_bytes=8), claim("y", request_bytes=1)))
    assert binding(book, "x", "y") == {}


def test_a_volume_made_for_the_claim_wins_over_a_smaller_one() -> None:
    volumes = [local("own", 9, "a", claimed_by="default/x"), local("small", 2)]
    book = book_on(surroundings(*volumes, claim("x", request_bytes=1), claim("y", request_bytes=1)))
    assert binding(book, "x", "y") == {"b": BIND, "c": BIND}


def test_a_volume_made_for_the_claim_but_too_small_is_passed_over() -> None:
    book = book_on(surroundings(local("own", 1, claimed_by="default/x"), local("big", 9), claim("x", request_bytes=5)))
    assert binding(book, "x") == {}


def test_a_class_that_provisions_needs_no_volume() -> None:
    assert binding(book_on(surroundings(claim("new", storage_class="later"))), "new") == {}


def test_a_class_provisions_only_where_its_topology_allows() -> None:
    zonal = replace(LATER, name="zonal", allowed_topologies=on("b"))
    book = book_on(surroundings(zonal, claim("new", storage_class="zonal")))
    assert binding(book, "new") == {"a": BIND, "c": BIND}


def test_a_driver_that_publishes_capacity_needs_enough_of_it() -> None:
    counted = StorageClass("counted", "counted.example.com", waits_for_consumer=True)
    world = surroundings(
        counted,
        claim("new", storage_class="counted", request_bytes=10),
        StorageCapacity("counted", 10, LabelSelector().plus({"host": "a"})),
        StorageCapacity("counted", 9, LabelSelector().plus({"host": "b"})),
        StorageCapacity("counted", 99, None),
        StorageCapacity("other", 99, LabelSelector()),
    )
    assert binding(book_on(world), "new") == {"b": SPACE, "c": SPACE}


def test_a_volume_is_reserved_until_the_placement_is_undone() -> None:
    book = book_on(surroundings(local("a1", 5, "a"), local("b1", 5, "b"), claim("x"), claim("y")))
    place = operation("t", wanting("x"), 0)
    book.changed(place, False)
    assert binding(book, "y") == {"a": BIND, "c": BIND}
    book.changed(place, True)
    assert binding(book, "y") == {"c": BIND}


@pytest.mark.parametrize("kind", [OperationKind.ALLOCATE, OperationKind.PIPELINE])
def test_a_shared_claim_stays_where_its_reserved_volume_is(kind: OperationKind) -> None:
    book = book_on(surroundings(local("a1", 5, "a"), local("b1", 5, "b"), claim("x")))
    first, second = operation("t1", wanting("x"), 1, kind), operation("t2", wanting("x"), 1, kind)
    book.changed(first, False)
    book.changed(second, False)
    assert binding(book, "x") == {"a": BIND, "c": BIND}
    book.changed(second, True)
    assert binding(book, "x") == {"a": BIND, "c": BIND}
    book.changed(first, True)
    assert binding(book, "x") == {"c": BIND}


def test_a_shared_claim_to_be_provisioned_ties_everybody_to_one_node() -> None:
    book = book_on(surroundings(claim("x", storage_class="later")))
    place = operation("t", wanting("x"), 2)
    book.changed(place, False)
    assert binding(book, "x") == {"a": BIND, "b": BIND}
    book.changed(place, True)
    assert binding(book, "x") == {}


def test_an_eviction_gives_no_volume_back() -> None:
    book = book_on(surroundings(local("a1", 5, "a"), claim("x"), claim("y")))
    book.changed(operation("t", wanting("x"), 0), False)
    book.changed(operation("t", wanting("x"), 0, OperationKind.EVICT), False)
    assert binding(book, "y") == {"a": BIND, "b": BIND, "c": BIND}


def test_a_run_of_tasks_with_one_claim_is_one_reservation() -> None:
    book = book_on(surroundings(local("a1", 5, "a"), local("a2", 5, "a"), claim("x"), claim("y")))
    single = operation("t", wanting("x"), 0)
    run = replace(single, tasks=[*single.tasks, *single.tasks], nodes=[0, 0], before=[*single.before, *single.before])
    book.changed(run, False)
    assert "a" not in binding(book, "y")


HOSTS = st.sampled_from([None, (), on("a"), on("b"), on("a", "c"), (*on("c"), NodeSelectorTerm())])
VOLUMES = st.builds(
    lambda size, terms, owner, kind: Volume("", kind, size, node_terms=terms, claimed_by=owner),
    st.integers(1, 4),
    HOSTS,
    st.sampled_from(["", "", "", "default/c0", "default/other"]),
    st.sampled_from(["local", "local", "later"]),
)
CLAIMS = st.builds(
    lambda size, kind, node: VolumeClaim("", storage_class=kind, request_bytes=size, selected_node=node),
    st.integers(0, 4),
    st.sampled_from(["local", "local", "later"]),
    st.sampled_from(["", "", "", "b"]),
)


def slow_pick(wanted: VolumeClaim, volumes: Sequence[Volume], node: str, used: set[str]) -> Volume | None:
    best: Volume | None = None
    for volume in sorted(volumes, key=lambda volume: (volume.capacity_bytes, volume.name)):
        if volume.name in used or volume.claimed_by not in ("", wanted.key):
            continue
        if volume.storage_class != wanted.storage_class:
            continue
        if volume.capacity_bytes < wanted.request_bytes:
            continue
        terms = volume.node_terms
        reached = terms is None or any(node in part.values for term in terms for part in term.expressions)
        if volume.claimed_by:
            return volume if reached else None
        if reached and (best is None or best.capacity_bytes > volume.capacity_bytes):
            best = volume
    return best


def slow_answer(claims: Sequence[VolumeClaim], volumes: Sequence[Volume], node: str) -> dict[str, str] | None:
    """Return which volume each claim gets on the node, empty for a new one, or None when the node is refused."""
    if any(each.selected_node not in ("", node) for each in claims):
        return None
    given: dict[str, str] = {}
    for each in sorted((each for each in claims if not each.selected_node), key=lambda each: each.request_bytes):
        volume = slow_pick(each, volumes, node, set(given.values()))
        given[each.key] = volume.name if volume else ""
    to_make = [each for each in claims if not given.get(each.key)]
    return None if any(each.storage_class == "local" for each in to_make) else given


@settings(max_examples=200, deadline=None)
@given(st.lists(VOLUMES, max_size=6), st.lists(CLAIMS, min_size=1, max_size=4), st.integers(0, 2))
def test_the_arrays_agree_with_kubernetes_loop_over_nodes(volumes: list[Volume], claims: list[VolumeClaim], node: int) -> None:
    volumes = [replace(volume, name=f"v{number}") for number, volume in enumerate(volumes)]
    claims = [replace(each, key=f"default/c{number}") for number, each in enumerate(claims)]
    book = book_on(surroundings(*volumes, *claims, claim("probe"), claim("probe2", request_bytes=3)))
    shape = wanting(*(each.key.partition("/")[2] for each in claims))
    expected = {name: BIND for name in "abc" if slow_answer(claims, volumes, name) is None}
    assert refusals(book.binding_layers(shape, EVERYWHERE)) == expected

    before = binding(book, "probe", "probe2")
    book.changed(operation("t", shape, node), False)
    given_to = slow_answer(claims, volumes, "abc"[node]) or {}
    owner_by_volume = {volume: key for key, volume in given_to.items()}
    left = [replace(volume, claimed_by=owner_by_volume.get(volume.name, volume.claimed_by)) for volume in volumes]
    probes = [claim("probe"), claim("probe2", request_bytes=3)]
    assert binding(book, "probe", "probe2") == {n: BIND for n in "abc" if slow_answer(probes, left, n) is None}
    book.changed(operation("t", shape, node), True)
    assert binding(book, "probe", "probe2") == before


def test_a_claim_is_entered_without_reading_pods_that_do_not_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, read = ObjectCluster(), list[str]()
    for name in ("a", "b"):
        cluster.put(build.pod(name, spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]}))
    drivers = [{"name": "disk.example.com", "nodeID": "n"}]
    cluster.put({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": drivers}})
    monkeypatch.setattr(cluster, "_read_again", lambda document: read.append(document["metadata"]["name"]))
    cluster.put({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"csi": {"driver": "disk.example.com", "volumeHandle": "1"}, "accessModes": ["ReadWriteOnce"]},
    })  # fmt: skip
    assert read == []
    cluster.put({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "default", "name": "data-b", "uid": "u"},
        "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"},
    })  # fmt: skip
    assert read == ["b"]
