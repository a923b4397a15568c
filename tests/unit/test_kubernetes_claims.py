"""Device claims: who finds devices where, and what a session grants."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.kubernetes.claims import ClaimBook
from phalanx.model.gang import Gang
from phalanx.model.node import Node
from phalanx.model.selectors import NodeSelectorTerm, Requirement
from phalanx.model.shape import ClaimUse, Shape
from phalanx.model.storage import Device, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.session.trace import Trace
from phalanx.state.cluster import ClusterState
from phalanx.state.gang_state import GangState, TaskState

FULL, AWAY = "cannot allocate all claims", "resourceclaim not available on the node"
EVERYWHERE = slice(None)
ANY = DeviceClass("any")
GPU = DeviceClass("gpu", ('device.driver == "gpu.example.com"',))


def devices(*names: str, size: int = 0) -> tuple[Device, ...]:
    return tuple(Device(name, attributes=(("size", size),)) for name in names)


def slice_on(node: str, *names: str, driver: str = "gpu.example.com", size: int = 0) -> ResourceSlice:
    return ResourceSlice(f"{node}-{driver}-{size}", driver, f"{node}-{size}", node=node, devices=devices(*names, size=size))


def request(count: int = 1, *expressions: str, of: str = "gpu", takes_all: bool = False) -> DeviceRequest:
    return DeviceRequest("req", of, count, takes_all, expressions)


def claim(name: str, *requests: DeviceRequest, **settings: object) -> ResourceClaim:
    made = ResourceClaim(f"default/{name}", requests or (request(),))
    return replace(made, **settings)  # type: ignore[arg-type]  # by name


def book_with(*things: ResourceClaim | ResourceSlice | DeviceClass, nodes: str = "abc") -> ClaimBook:
    state = ClusterState()
    for name in nodes:
        state.put_node(Node(name, labels={"host": name}))
    state.tables.note(
        resource_claims={each.key: each for each in things if isinstance(each, ResourceClaim)},
        device_classes={each.name: each for each in (ANY, GPU, *things) if isinstance(each, DeviceClass)},
        resource_slices={each.name: each for each in things if isinstance(each, ResourceSlice)},
    )
    return ClaimBook(Session(state.snapshot(0.0), Policy(actions=(), tiers=()), {}, Trace()))


def using(*claims: str) -> Shape:
    return Shape(resource_claims=tuple(ClaimUse(name, name) for name in claims))


def operation(name: str, shape: Shape, node: int, kind: OperationKind = OperationKind.ALLOCATE) -> Operation:
    task = Task(TaskKey(f"default/{name}"), name, shape)
    state = TaskState(task, GangState(Gang(GangKey("default/gang")), ()), -1)
    return Operation(kind, [state], [node], [Status.PENDING])


def refused(book: ClaimBook, *claims: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for layer in book.layers(using(*claims), EVERYWHERE):
        assert layer.is_final
        for number in np.flatnonzero(layer.refused).tolist():
            found.setdefault("abc"[number], layer.reason)
    return found


def test_a_shape_without_claims_is_never_refused() -> None:
    book = book_with()
    assert not book.is_used
    assert book.prefilter(Shape()).ok
    assert book.layers(Shape(), EVERYWHERE) == []


@pytest.mark.parametrize(
    ("things", "message"),
    [
        ((), 'could not find ResourceClaim "default/x"'),
        ((claim("x", is_deleting=True),), 'resourceclaim "x" is being deleted'),
        ((claim("x", request(of="tpu")),), "request req: device class tpu does not exist"),
        ((claim("x", reserved_for=("pod",) * 256),), "resourceclaim in use"),
    ],
)
def test_a_claim_that_no_node_can_serve_is_refused_at_once(things: tuple[ResourceClaim, ...], message: str) -> None:
    verdict = book_with(*things).prefilter(using("x"))
    assert (verdict.ok, verdict.plugin, verdict.message) == (False, "predicates", message)


def test_a_claim_that_is_not_made_yet_is_waited_for() -> None:
    verdict = book_with().prefilter(Shape(resource_claims=(ClaimUse("gpu", ""),)))
    assert verdict.message == 'resourceclaim for "gpu" is not created yet'


def test_the_class_of_an_allocated_claim_is_not_needed_any_more() -> None:
    assert book_with(claim("x", request(of="tpu"), is_allocated=True)).prefilter(using("x")).ok


def test_places_of_this_session_count_towards_the_most_users_of_a_claim() -> None:
    book = book_with(claim("x", is_allocated=True, reserved_for=("pod",) * 255))
    assert book.prefilter(using("x")).ok
    book.changed(operation("t", using("x"), 0), False)
    assert not book.prefilter(using("x")).ok
    book.changed(operation("t", using("x"), 0), True)
    assert book.prefilter(using("x")).ok


def test_a_node_needs_as_many_free_devices_as_the_claim_wants() -> None:
    book = book_with(slice_on("a", "g0", "g1"), slice_on("b", "g0"), claim("x", request(2)))
    assert refused(book, "x") == {"b": FULL, "c": FULL}


def test_layers_have_the_length_of_the_selection() -> None:
    book = book_with(slice_on("a", "g0"), claim("x"))
    (layer,) = book.layers(using("x"), np.array([2, 0]))
    assert layer.refused.tolist() == [True, False]


def test_a_device_of_an_allocated_claim_is_not_free() -> None:
    held = claim("old", is_allocated=True, devices=(("gpu.example.com", "a-0", "g0"),))
    book = book_with(slice_on("a", "g0"), slice_on("b", "g0"), held, claim("x"))
    assert refused(book, "x") == {"a": FULL, "c": FULL}


def test_an_allocated_claim_goes_where_its_devices_are() -> None:
    by_name = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("b",)),)),)
    book = book_with(claim("x", is_allocated=True, node_terms=by_name), claim("y", is_allocated=True))
    assert refused(book, "x") == {"a": AWAY, "c": AWAY}
    assert refused(book, "y") == {}


def test_devices_for_all_nodes_and_for_some_nodes_are_counted_where_they_can_be_reached() -> None:
    terms = (NodeSelectorTerm((Requirement("host", "In", ("b", "c")),)),)
    everywhere = ResourceSlice("s", "gpu.example.com", "net", for_all_nodes=True, devices=devices("n0"))
    some = ResourceSlice("t", "gpu.example.com", "rack", node_terms=terms, devices=devices("r0"))
    gone = slice_on("gone", "g0")
    book = book_with(everywhere, some, gone, slice_on("b", "g0"), claim("x", request(2)), claim("y", request(3)))
    assert refused(book, "x") == {"a": FULL}
    assert refused(book, "y") == {"a": FULL, "c": FULL}


def test_expressions_of_class_and_request_must_both_accept_a_device() -> None:
    big = 'device.attributes["gpu.example.com"].size > 4'
    book = book_with(
        slice_on("a", "g0", size=8),
        slice_on("b", "g0"),
        slice_on("c", "n0", driver="nic.example.com"),
        claim("x", request(1, big)),
    )
    assert refused(book, "x") == {"b": FULL, "c": FULL}


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ('device.attributes["some-driver"].healthy', "runtime error: no such key: healthy"),
        ("device.driver.absent()", "compile error: method 'absent' with 0 arguments is not supported"),
    ],
)
def test_an_expression_without_an_answer_spoils_the_claim_on_every_node(expression: str, error: str) -> None:
    broken = DeviceClass("broken", (expression,))
    book = book_with(broken, slice_on("a", "g0"), claim("x", request(of="broken")), claim("y", request(1, expression)))
    assert set(refused(book, "x").values()) == {f"class broken: selector #0: CEL {error}"}
    assert set(refused(book, "y").values()) == {f"claim default/y: selector #0: CEL {error}"}
    assert list(refused(book, "x")) == ["a", "b", "c"]


def test_a_request_for_all_takes_every_device_and_fails_when_one_is_taken() -> None:
    held = claim("old", is_allocated=True, devices=(("gpu.example.com", "b-0", "g1"),))
    everything = claim("x", request(takes_all=True))
    book = book_with(slice_on("a", "g0", "g1"), slice_on("b", "g0", "g1"), held, everything, claim("y"))
    assert refused(book, "x") == {"b": FULL, "c": FULL}
    assert refused(book, "x", "y") == {"a": FULL, "b": FULL, "c": FULL}
    book.changed(operation("t", using("x"), 0), False)
    assert refused(book, "y") == {"a": FULL, "c": FULL}


def test_a_choosy_request_gets_the_only_device_it_accepts_though_it_comes_last() -> None:
    second = 'device.attributes["gpu.example.com"].size == 0'
    things = (slice_on("a", "g0"), slice_on("a", "g0", size=8))
    book = book_with(*things, claim("x", request(), request(1, second)), claim("y", request(1, second)))
    assert refused(book, "x") == {"b": FULL, "c": FULL}
    assert refused(book, "x", "y") == {"a": FULL, "b": FULL, "c": FULL}


def test_granted_devices_are_taken_until_the_placement_is_undone() -> None:
    book = book_with(slice_on("a", "g0"), slice_on("b", "g0"), claim("x"), claim("y"))
    place = operation("t", using("x"), 0)
    book.changed(place, False)
    assert refused(book, "y") == {"a": FULL, "c": FULL}
    book.changed(operation("t", using("x"), 0, OperationKind.EVICT), False)
    assert refused(book, "y") == {"a": FULL, "c": FULL}
    book.changed(place, True)
    assert refused(book, "y") == {"c": FULL}


def test_a_shared_claim_is_allocated_once_and_ties_its_users_to_the_node() -> None:
    book = book_with(slice_on("a", "g0"), slice_on("b", "g0"), claim("x"))
    first, second = operation("t1", using("x"), 1, OperationKind.PIPELINE), operation("t2", using("x"), 1)
    book.changed(first, False)
    assert refused(book, "x") == {"a": AWAY, "c": AWAY}
    book.changed(second, False)
    book.changed(first, True)
    assert refused(book, "x") == {"a": AWAY, "c": AWAY}
    book.changed(second, True)
    assert refused(book, "x") == {"c": FULL}


def test_a_shared_claim_on_a_device_of_all_nodes_ties_nobody() -> None:
    everywhere = ResourceSlice("s", "gpu.example.com", "net", for_all_nodes=True, devices=devices("n0"))
    book = book_with(everywhere, claim("x"), claim("y"))
    book.changed(operation("t", using("x"), 1), False)
    assert refused(book, "x") == {}
    assert refused(book, "y") == {"a": FULL, "b": FULL, "c": FULL}


def test_a_placement_without_enough_devices_grants_nothing() -> None:
    book = book_with(slice_on("a", "g0"), claim("x", request(10**9)), claim("y"))
    book.changed(operation("t", using("x"), 0), False)
    assert refused(book, "y") == {"b": FULL, "c": FULL}


def test_many_separate_kinds_are_fine_and_many_overlapping_ones_find_no_node() -> None:
    sizes = [slice_on("a", "g0", size=size) for size in range(12)]
    exact = [request(1, f'device.attributes["gpu.example.com"].size == {size}') for size in range(12)]
    loose = [request(1, f'device.attributes["gpu.example.com"].size >= {size}') for size in range(12)]
    book = book_with(*sizes, claim("x", *exact), claim("y", *loose))
    assert "a" not in refused(book, "x")
    assert refused(book, "y")["a"] == FULL


def slow_fit(wanted: Sequence[tuple[int, int]], sizes: Sequence[int]) -> bool:
    """Tell whether devices of these sizes serve requests (count, smallest size), by trying every order."""
    units = [smallest for count, smallest in wanted for _ in range(count)]
    return any(all(size >= need for size, need in zip(order, units, strict=True)) for order in permutations(sizes, len(units)))


REQUESTS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2)), min_size=1, max_size=3)


@settings(max_examples=100, deadline=None)
@given(REQUESTS, st.lists(st.integers(0, 2), max_size=6), st.integers(0, 6))
def test_a_node_is_allowed_exactly_when_devices_can_be_dealt_out(
    wanted: list[tuple[int, int]], sizes: list[int], shared: int
) -> None:
    parts = [replace(slice_on("a", "g0", size=size), name=f"s{n}", pool=f"p{n}") for n, size in enumerate(sizes)]
    parts = [replace(part, node="", for_all_nodes=True) if n < shared else part for n, part in enumerate(parts)]
    requests = [request(count, f'device.attributes["gpu.example.com"].size >= {smallest}') for count, smallest in wanted]
    book = book_with(*parts, claim("x", *requests), claim("probe", request(takes_all=True)))
    fits = slow_fit(wanted, sizes)
    assert ("a" not in refused(book, "x")) == fits
    assert ("b" not in refused(book, "x")) == slow_fit(wanted, sizes[:shared])
    before = refused(book, "probe")
    book.changed(operation("t", using("x"), 0), False)
    assert not fits or "a" in refused(book, "probe")
    book.changed(operation("t", using("x"), 0), True)
    assert refused(book, "probe") == before
