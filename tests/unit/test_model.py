"""The nouns: quantities, resources, selectors, statuses, gangs, tasks and shapes."""

from fractions import Fraction

import pytest

from phalanx.errors import SnapshotError
from phalanx.model import task_status as status
from phalanx.model.gang import Gang, SubGroup
from phalanx.model.quantity import LARGEST, parse_quantity, to_milli, to_units
from phalanx.model.queue import Queue
from phalanx.model.resources import ResourceSpace, add, amount_of, read_resources, readable, scale_of
from phalanx.model.selectors import LabelSelector, NodeSelectorTerm, Requirement
from phalanx.model.shape import AffinityTerm, ClaimUse, HostPort, PodAffinity, Shape, SpreadConstraint
from phalanx.model.storage import NO_PROVISIONER, StorageClass
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("7", 7), ("+7", 7), ("-7", -7), ("1.5", Fraction(3, 2)), (".5", Fraction(1, 2)), ("1.", 1),
        ("1n", Fraction(1, 10**9)), ("1u", Fraction(1, 10**6)), ("1m", Fraction(1, 1000)),
        ("1k", 10**3), ("1M", 10**6), ("1G", 10**9), ("1T", 10**12), ("1P", 10**15), ("1E", 10**18),
        ("1Ki", 2**10), ("1Mi", 2**20), ("1Gi", 2**30), ("1Ti", 2**40), ("1Pi", 2**50), ("1Ei", 2**60),
        ("1e3", 1000), ("1E3", 1000), ("15e-1", Fraction(3, 2)), ("2e+2", 200), ("0.1", Fraction(1, 10)),
    ],
)  # fmt: skip
def test_a_quantity_is_read_exactly(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "1x", "1 Gi", "Gi", "1ki", "1K", "--1", "1e", "1e3Mi", "0x10", "1,5", "1e1234", "9" * 5000, " 1", "1\n", "\uff11"],
)
def test_a_text_that_is_no_quantity_says_what_to_write(text: str) -> None:
    with pytest.raises(SnapshotError, match="not a number with a suffix; write for example '2', '500m', '4Gi' or '1e3'"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("quantity", "units", "milli"),
    [
        ("1", 1, 1000), ("1m", 1, 1), ("1n", 1, 1), ("1500m", 2, 1500), ("0.0001", 1, 1), ("-1500m", -2, -1500), ("-1n", -1, -1),
        (2, 2, 2000), (1.5, 2, 1500), ("0", 0, 0), ("1001u", 1, 2),
    ],
)  # fmt: skip
def test_amounts_round_away_from_zero(quantity: object, units: int, milli: int) -> None:
    assert to_units(quantity) == units
    assert to_milli(quantity) == milli


def test_the_largest_amount_is_the_last_one_that_is_taken() -> None:
    assert to_units(str(LARGEST)) == LARGEST
    for quantity in (str(LARGEST + 1), f"-{LARGEST + 1}", "1e999", 1e300):
        with pytest.raises(SnapshotError, match="larger than any machine"):
            to_units(quantity)


@pytest.mark.parametrize("quantity", [None, True, [], {}, b"1"])
def test_a_quantity_is_a_number_or_a_text(quantity: object) -> None:
    with pytest.raises(SnapshotError, match="expected a number or a string such as '500m'"):
        to_units(quantity)


@pytest.mark.parametrize(
    ("name", "quantity", "amount"),
    [("cpu", "1500m", 1500), ("memory", "1Ki", 1024), ("pods", 3, 3), ("nvidia.com/gpu", 2, 2000), ("memory", "1m", 1)],
)
def test_each_resource_has_its_unit(name: str, quantity: object, amount: int) -> None:
    assert amount_of(name, quantity) == amount


def test_memory_and_pods_count_one_by_one_and_all_else_in_thousandths() -> None:
    assert [scale_of(name) for name in ("cpu", "memory", "pods", "example.com/x")] == [1000, 1, 1, 1000]


def test_a_resource_list_is_read_and_its_errors_name_the_place() -> None:
    assert read_resources(None, where="x") == {}
    assert read_resources({"cpu": 1, "memory": "1Ki"}, where="x") == {"cpu": 1000, "memory": 1024}
    with pytest.raises(SnapshotError, match=r"^spec\.x\.cpu: quantity 'many'"):
        read_resources({"cpu": "many"}, where="spec.x")
    with pytest.raises(SnapshotError, match=r"^spec\.x: expected a mapping of resource names to quantities, got list"):
        read_resources([], where="spec.x")


def test_adding_resources_leaves_both_sides_alone() -> None:
    left, right = {"cpu": 1}, {"cpu": 2, "memory": 3}
    assert add(left, right) == {"cpu": 3, "memory": 3}
    assert left == {"cpu": 1}


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 1500, "1.5"), ("memory", 32 << 30, "32Gi"), ("memory", 1536 << 20, "1.5Gi"), ("memory", 5 << 40, "5Ti"),
        ("memory", 2048, "2Ki"), ("memory", 512, "512"), ("pods", 8, "8"), ("nvidia.com/gpu", 2000, "2"),
        ("memory", 3 << 20, "3Mi"),
    ],
)  # fmt: skip
def test_amounts_are_written_as_a_person_would(name: str, amount: int, text: str) -> None:
    assert readable(name, amount) == text


def test_a_resource_space_puts_the_usual_names_first_and_the_rest_in_order() -> None:
    space = ResourceSpace.of(["zeta", "memory", "alpha", "cpu"])
    assert space.names == ("cpu", "memory", "pods", "alpha", "zeta")
    assert space.row_by_name["zeta"] == 4
    assert len(space) == 5
    assert space.covers({"alpha": 1, "cpu": 1})
    assert not space.covers({"beta": 1})


LABELS = {"zone": "east", "cores": "8", "many": "x"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "matches"),
    [
        ("In", "zone", ("east", "west"), True), ("In", "zone", ("west",), False), ("In", "none", ("east",), False),
        ("NotIn", "zone", ("west",), True), ("NotIn", "zone", ("east",), False), ("NotIn", "none", ("east",), True),
        ("Exists", "zone", (), True), ("Exists", "none", (), False),
        ("DoesNotExist", "zone", (), False), ("DoesNotExist", "none", (), True),
        ("Gt", "cores", ("7",), True), ("Gt", "cores", ("8",), False),
        ("Lt", "cores", ("9",), True), ("Lt", "cores", ("8",), False),
        ("Gt", "many", ("7",), False), ("Lt", "none", ("7",), False),
        ("Gt", "cores", ("7", "7"), False), ("Gt", "cores", ("x",), False),
        ("Gt", "cores", ("9" * 30,), False), ("Lt", "cores", ("9" * 30,), False), ("Sometimes", "zone", ("east",), False),
    ],
)  # fmt: skip
def test_each_operator_means_what_kubernetes_says(operator: str, key: str, values: tuple[str, ...], matches: bool) -> None:
    assert Requirement(key, operator, values).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("operator", "values", "is_valid"),
    [
        ("In", ("a",), True), ("In", (), False), ("NotIn", (), False), ("Exists", (), True), ("Exists", ("a",), False),
        ("DoesNotExist", ("a",), False), ("Gt", ("5",), True), ("Gt", ("x",), False), ("Lt", ("1", "2"), False),
        ("Gt", ("-1",), False),
        ("In", ("-a",), False), ("In", ("a b",), False), ("In", ("",), True), ("In", ("x" * 64,), False), ("Like", ("a",), False),
    ],
)  # fmt: skip
def test_a_requirement_knows_whether_the_api_server_takes_it(operator: str, values: tuple[str, ...], is_valid: bool) -> None:
    assert Requirement("key", operator, values).is_valid is is_valid


def test_an_empty_selector_matches_everything_and_can_be_narrowed() -> None:
    assert LabelSelector().is_empty
    assert LabelSelector().matches({})
    narrow = LabelSelector().plus({"b": "2", "a": "1"})
    assert [part.key for part in narrow.requirements] == ["a", "b"]
    assert narrow.matches({"a": "1", "b": "2"})
    assert not narrow.matches({"a": "1"})


def test_a_term_knows_the_names_its_fields_allow() -> None:
    def named(*names: str, operator: str = "In") -> Requirement:
        return Requirement("metadata.name", operator, names)

    assert NodeSelectorTerm().is_empty
    assert NodeSelectorTerm().names() is None
    assert NodeSelectorTerm(fields=(named("a"),)).names() == frozenset({"a"})
    assert NodeSelectorTerm(fields=(named("a"), named("b"))).names() == frozenset()
    assert NodeSelectorTerm(fields=(named("a", operator="NotIn"),)).names() is None
    assert NodeSelectorTerm(fields=(named("a"),)).is_valid
    assert not NodeSelectorTerm(fields=(named("a", "b"),)).is_valid
    assert not NodeSelectorTerm(fields=(Requirement("metadata.uid", "In", ("a",)),)).is_valid
    assert not NodeSelectorTerm(expressions=(Requirement("k", "Gt", ("-1",)),)).is_valid


def test_statuses_count_for_what_they_should() -> None:
    names = {name: {each.name for each in getattr(status, name)} for name in ("HOLDING", "READY", "VALID", "SCHEDULED")}
    assert names["HOLDING"] == {"ALLOCATED", "BINDING", "BOUND", "RUNNING"}
    assert names["READY"] == names["HOLDING"] | {"SUCCEEDED"}
    assert names["VALID"] == names["READY"] | {"PIPELINED", "PENDING"}
    assert names["SCHEDULED"] == {"RUNNING", "BOUND", "FAILED", "SUCCEEDED"}
    assert {each.name for each in status.EVICTABLE} == {"BOUND", "RUNNING"}
    assert {each.name for each in status.ON_NODE} == names["HOLDING"] | {"RELEASING"}
    assert Status.PENDING.word == "Pending"


def test_role_minima_count_unless_they_add_up_to_more_than_the_gang_needs() -> None:
    assert not Gang(GangKey("default/g"), min_member=3).roles_count
    assert Gang(GangKey("default/g"), min_member=3, role_minima={"a": 1, "b": 2}).roles_count
    assert not Gang(GangKey("default/g"), min_member=2, role_minima={"a": 1, "b": 2}).roles_count


def test_a_gang_has_a_namespace_and_a_name() -> None:
    gang = Gang(GangKey("research/train"))
    assert (gang.namespace, gang.name) == ("research", "train")


def test_a_template_names_the_sub_group_of_a_task_by_its_labels() -> None:
    template = SubGroup("ring", match_keys=("ring", "side"), selector=LabelSelector().plus({"app": "train"}))
    assert template.instance({"app": "train", "ring": "1", "side": "a"}) == ("1", "a")
    assert template.instance({"app": "train", "ring": "1"}) is None
    assert template.instance({"app": "train", "ring": "", "side": "a"}) is None
    assert template.instance({"ring": "1", "side": "a"}) is None
    assert SubGroup("fixed").instance({"ring": "1"}) is None
    assert SubGroup("without keys", match_keys=()).instance({"ring": "1"}) is None


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("train-worker-7", 7), ("train-7", None), ("train", None), ("a-b-c-12", 12), ("a-b-x", None), ("a-b-", None), ("a-b-07", 7),
        ("a-b-" + "9" * 300, None),
    ],
)  # fmt: skip
def test_the_number_at_the_end_of_a_long_name_orders_tasks(name: str, ordinal: int | None) -> None:
    assert Task(TaskKey(f"default/{name}"), "uid", Shape()).ordinal == ordinal


def test_a_task_takes_namespace_and_modesty_from_its_shape() -> None:
    task = Task(TaskKey("research/train-0"), "uid", Shape(namespace="research", request={"pods": 1}))
    assert (task.namespace, task.name, task.is_best_effort) == ("research", "train-0", True)
    assert not Shape(request={"pods": 1, "cpu": 1}).is_best_effort
    assert Shape(request={"cpu": 0}).is_best_effort


@pytest.mark.parametrize(
    ("left", "right", "conflicts"),
    [
        (HostPort(80), HostPort(80), True), (HostPort(80), HostPort(81), False), (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, "TCP", "10.0.0.1"), HostPort(80), True),
        (HostPort(80, "TCP", "10.0.0.1"), HostPort(80, "TCP", "10.0.0.1"), True),
        (HostPort(80, "TCP", "10.0.0.1"), HostPort(80, "TCP", "10.0.0.2"), False),
    ],
)  # fmt: skip
def test_host_ports_conflict_on_the_same_address_or_any(left: HostPort, right: HostPort, conflicts: bool) -> None:
    assert left.conflicts(right) is conflicts
    assert right.conflicts(left) is conflicts


TERM = AffinityTerm("zone", LabelSelector())


@pytest.mark.parametrize(
    "shape",
    [
        Shape(affinity=PodAffinity(required=(TERM,))), Shape(anti_affinity=PodAffinity(preferred=(TERM,))),
        Shape(spread=(SpreadConstraint("zone", 1, True, None),)), Shape(host_ports=(HostPort(80),)),
        Shape(volume_claims=("data",)), Shape(resource_claims=(ClaimUse("gpu", "claim"),)),
    ],
)  # fmt: skip
def test_a_shape_that_looks_at_other_pods_or_shared_things_is_not_self_contained(shape: Shape) -> None:
    assert not shape.is_self_contained


def test_a_plain_shape_is_self_contained() -> None:
    assert Shape(request={"cpu": 1}, node_selector={"zone": "east"}).is_self_contained


def test_a_queue_is_open_only_in_that_state() -> None:
    assert Queue("q").is_open
    assert not Queue("q", state="Closing").is_open


def test_a_storage_class_makes_volumes_only_with_a_real_provisioner() -> None:
    assert StorageClass("fast", "csi.example.com").can_provision
    assert not StorageClass("none", "").can_provision
    assert not StorageClass("local", NO_PROVISIONER).can_provision


@pytest.mark.parametrize(
    ("status", "leaving_since", "is_disrupted", "makes_room"),
    [
        (Status.RUNNING, 0.0, False, False),
        (Status.RELEASING, 0.0, False, True),  # its eviction is on the way, and the API server has not reported it yet
        (Status.RELEASING, 9.0, False, False),
        (Status.RELEASING, 9.0, True, True),
    ],
)
def test_a_pod_that_was_preempted_makes_room(status: Status, leaving_since: float, is_disrupted: bool, makes_room: bool) -> None:
    task = Task(TaskKey("default/a"), "a", Shape(), status=status, leaving_since=leaving_since, is_disrupted=is_disrupted)
    assert task.makes_room is makes_room
