"""Devices of evicted pods: given to pipelined ones in the same session, taken again when the eviction is taken back."""

from functools import partial

import pytest

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.state.gang_state import TaskState
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import crowded_clusters as crowds
from tests.support import kai_objects as kai
from tests.support.open_sessions import gang_in, session_of

OURS, KAI = policy_of_profile("phalanx"), policy_of_profile("kai")
VOLCANO = build.policy([["priority", "gang"], ["predicates"]], "allocate, gangpreempt")
FAMILIES = [pytest.param(partial(session_of, policy=OURS), id="main"),
            pytest.param(partial(session_of, policy=KAI, catalogue=KAI_CATALOGUE), id="kai")]  # fmt: skip


def claim(name: str, *holders: str, devices: tuple[str, ...] = (), count: int = 1) -> Document:
    """Return a claim on some devices; it holds those named, for the pods named."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    results = [{"request": "gpus", "driver": "gpu.example.com", "pool": "node-0", "device": device} for device in devices]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": holder, "uid": holder} for holder in holders],
    }
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"namespace": "default", "name": name},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}, "status": status if devices else {},
    }  # fmt: skip


def user(name: str, of: str, *, on: str = "") -> Document:
    """Return a pod of the gang of its name that uses a claim."""
    pod = build.pod(f"{name}-0", group=name, on=on, spec={"resourceClaims": [{"name": "gpus", "resourceClaimName": of}]}, cpu=1)
    pod["metadata"]["annotations"][kai.GROUP] = name
    return pod


def node(devices: int = 2) -> list[Document]:
    slices = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "node-0-gpus"},
        "spec": {
            "driver": "gpu.example.com", "nodeName": "node-0", "pool": {"name": "node-0", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }  # fmt: skip
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    return [build.node("node-0", cpu=8), slices, kind]


def crowded(*more: Document) -> list[Document]:
    """Return a node whose two devices are held by one pod, and a gang that wants one of them."""
    old = [build.pod_group("old", phase="Running"), claim("old", "old-0", devices=("gpu-0", "gpu-1"), count=2)]
    new = build.pod_group("new", phase="Inqueue", priorityClassName="high")
    return [*node(), *crowds.classes(), *old, user("old", "old", on="node-0"), new, claim("new"), user("new", "new"), *more]


def task(session: Session, gang: str) -> TaskState:
    return gang_in(session, gang).tasks[0]


def has_room(session: Session, gang: str) -> bool:
    return bool(session.node_view(task(session, gang).task.shape).allowed[0])


def waits(session: Session, gang: str) -> bool:
    return any(mask[0] for mask in session.node_waits(task(session, gang).task.shape))


def evict(statement: Statement, victim: TaskState) -> None:
    statement.evict(victim, action="test", preemptor="", reason="")


@pytest.mark.parametrize("open_session", FAMILIES)
def test_an_eviction_frees_devices_for_pipelined_tasks_and_its_rollback_takes_them_again(open_session: partial[Session]) -> None:
    session = open_session(crowded())
    assert not has_room(session, "new")
    with session.statement() as statement:
        evict(statement, task(session, "old"))
        assert has_room(session, "new")
        assert waits(session, "new")
        statement.pipeline([task(session, "new")], [0])
    assert not has_room(session, "new")


@pytest.mark.parametrize("open_session", FAMILIES)
def test_devices_are_freed_once_and_given_once(open_session: partial[Session]) -> None:
    rivals = [build.pod_group(name, phase="Inqueue") for name in ("second", "third")]
    more = [*rivals, claim("second"), user("second", "second"), claim("third"), user("third", "third")]
    session = open_session(crowded(*more))
    with session.statement() as statement:
        evict(statement, task(session, "old"))
        for name in ("new", "second"):
            assert has_room(session, name)
            statement.pipeline([task(session, name)], [0])
        assert not has_room(session, "third")
        mark = statement.checkpoint()
        statement.rollback(mark - 1)
        assert has_room(session, "third")


@pytest.mark.parametrize("open_session", FAMILIES)
def test_a_shared_claim_is_free_only_when_its_last_user_goes(open_session: partial[Session]) -> None:
    groups = [build.pod_group(name, phase="Running") for name in ("one", "two")]
    pods = [user(name, "both", on="node-0") for name in ("one", "two")]
    waiting = [build.pod_group("new", phase="Inqueue"), claim("new"), user("new", "new")]
    session = open_session([*node(1), *groups, claim("both", "one-0", "two-0", devices=("gpu-0",)), *pods, *waiting])
    with session.statement() as statement:
        evict(statement, task(session, "one"))
        assert not has_room(session, "new")
        evict(statement, task(session, "two"))
        assert has_room(session, "new")


@pytest.mark.parametrize("open_session", FAMILIES)
def test_a_victim_that_stays_after_all_has_its_devices_again(open_session: partial[Session]) -> None:
    session = open_session(crowded())
    with session.statement() as statement:
        evict(statement, task(session, "old"))
        assert statement.restore(task(session, "old"))
        assert not has_room(session, "new")
        statement.rollback(1)
        assert has_room(session, "new")


def test_devices_of_pods_that_leave_go_to_pipelined_tasks_only() -> None:
    objects = crowded()
    leaving = next(item for item in objects if item["metadata"]["name"] == "old-0")
    kai.leaving(leaving)
    cycle = build.Cluster(OURS).submit(objects).run_cycle()
    assert (cycle.binds, cycle.pipelined) == ([], [("new-0", "node-0")])


def test_a_gang_that_lacks_only_devices_preempts_whoever_holds_them() -> None:
    cycle = build.Cluster(OURS).submit(crowded()).run_cycle()
    assert (list(cycle.answer["evictions"]), cycle.pipelined) == (["default/old-0"], [("new-0", "node-0")])
    assert cycle.answer["claims"] == {"default/old": {}}


def test_without_the_setting_no_eviction_helps_as_in_kubernetes() -> None:
    cycle = build.Cluster(VOLCANO).submit(crowded()).run_cycle()
    assert (cycle.answer["evictions"], cycle.pipelined) == ({}, [])


def test_a_pod_that_is_bound_gets_its_devices_by_name() -> None:
    waiting = [build.pod_group("new", phase="Inqueue"), claim("new", count=2), user("new", "new")]
    cycle = build.Cluster(OURS).submit(node(), waiting).run_cycle()
    place = {"request": "gpus", "driver": "gpu.example.com", "pool": "node-0"}
    assert cycle.answer["claims"]["default/new"] == {
        "allocation": {"devices": {"results": [{**place, "device": "gpu-0"}, {**place, "device": "gpu-1"}]}},
        "reservedFor": [{"resource": "pods", "name": "new-0", "uid": "new-0"}],
    }
