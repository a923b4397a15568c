"""Pods that look at other pods: affinity, anti-affinity and spread, what they see of this session, and whom they concern."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.kubernetes.podindex import PodIndex
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
ONLY_AFFINITY = {f"{name}.weight": 0 for name in ("leastrequested", "balancedresource", "nodeaffinity", "tainttoleration")}
PLUGINS: list[Any] = ["gang", "predicates", {"name": "nodeorder", "arguments": ONLY_AFFINITY}]
NODES = [build.node(f"n{number}", labels={"zone": "ab"[number // 2]}) for number in range(4)]


def session_of(*parts: Document | Iterable[Document]) -> Session:
    policy = build.policy([PLUGINS], "allocate")
    return open_session(Cluster(policy).submit(NODES, *parts).objects.snapshot(0.0), policy, CATALOGUE)


def term(app: str = "web", key: str = "zone", **more: Any) -> Document:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: Document) -> Document:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Document) -> Document:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def wishes(kind: str, weight: int, wished: Document) -> Document:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": wished}]}}


def pod(name: str, app: str = "", *, on: str = "", affinity: Document | None = None) -> Document:
    found = build.pod(name, group="" if on else "train", on=on, spec={"affinity": affinity} if affinity else None, cpu=1)
    found["metadata"]["labels"] = {"app": app} if app else {}
    return found


def waiting(*pods: Document) -> list[Document]:
    return [build.pod_group("train", min_member=len(pods)), *pods]


def task(session: Session, name: str) -> TaskState:
    gang = session.gang(GangKey("default/train"))
    assert gang is not None
    return next(task for task in gang.tasks if task.task.name == name)


def open_nodes(session: Session, name: str = "new") -> list[str]:
    mask = session.node_view(task(session, name).task.shape).feasible
    return [session.node_name(int(number)) for number in np.flatnonzero(mask)]


def scores(session: Session, name: str = "new") -> list[float]:
    found = session.node_view(task(session, name).task.shape).scores(np.ones(4, dtype=np.bool_))
    assert found is not None
    return [float(score) for score in found]


def test_affinity_draws_to_the_domain_of_matching_pods() -> None:
    session = session_of(pod("web", "web", on="n2"), waiting(pod("new", affinity=near(term()))))
    assert open_nodes(session) == ["n2", "n3"]


def test_a_pod_that_leaves_still_draws_and_repels() -> None:
    leaving = pod("web", "web", on="n2")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert open_nodes(session_of(leaving, waiting(pod("new", affinity=near(term()))))) == ["n2", "n3"]
    assert open_nodes(session_of(leaving, waiting(pod("new", affinity=apart(term()))))) == ["n0", "n1"]


def test_all_affinity_terms_must_be_met_by_the_same_pods() -> None:
    both = near(term("web"), term("web", "kubernetes.io/hostname"))
    assert open_nodes(session_of(pod("web", "web", on="n2"), waiting(pod("new", affinity=both)))) == ["n2"]
    mixed = near(term("web"), term("db"))
    session = session_of(pod("web", "web", on="n2"), pod("db", "db", on="n2"), waiting(pod("new", affinity=mixed)))
    assert open_nodes(session) == []


def test_the_first_of_a_group_may_start_anywhere_that_has_the_key() -> None:
    session = session_of(build.node("bare"), waiting(pod("new", "web", affinity=near(term()))))
    assert open_nodes(session) == ["n0", "n1", "n2", "n3"]


def test_a_node_without_the_key_is_never_too_near() -> None:
    session = session_of(build.node("bare"), pod("web", "web", on="n2"), waiting(pod("new", affinity=apart(term()))))
    assert open_nodes(session) == ["bare", "n0", "n1"]


def test_pods_of_this_session_count_at_once_for_the_terms_of_the_next_one() -> None:
    session = session_of(waiting(pod("first", "web"), pod("new", "web", affinity=apart(term()))))
    with session.statement() as statement:
        statement.allocate([task(session, "first")], [0])
        assert open_nodes(session) == ["n2", "n3"]
    assert open_nodes(session) == ["n0", "n1", "n2", "n3"]


def test_an_evicted_pod_is_gone_at_once() -> None:
    running = build.in_group("train", pod("web", "web", on="n2"))
    session = session_of(waiting(running, pod("new", affinity=apart(term()))))
    assert open_nodes(session) == ["n0", "n1"]
    session.statement().evict(task(session, "web"), action="preempt", preemptor="x", reason="y")
    assert open_nodes(session) == ["n0", "n1", "n2", "n3"]


def test_terms_of_pods_placed_in_this_session_are_not_seen_where_no_such_pod_was_at_the_opening() -> None:
    lonely = pod("first", "lonely", affinity=apart(term("new")))
    session = session_of(waiting(lonely, pod("new", "new")))
    session.statement().allocate([task(session, "first")], [0])
    assert open_nodes(session) == ["n0", "n1", "n2", "n3"]
    before = pod("before", "lonely", on="n0", affinity=apart(term("other")))
    session = session_of(before, waiting(lonely, pod("new", "new")))
    session.statement().allocate([task(session, "first")], [0])
    assert open_nodes(session) == ["n2", "n3"]


@pytest.mark.parametrize(
    ("more", "namespace_labels", "is_seen"),
    [
        pytest.param({}, None, False, id="only the own namespace"),
        pytest.param({"namespaces": ["other"]}, None, True, id="named"),
        pytest.param({"namespaceSelector": {}}, None, True, id="all namespaces"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"team": "x"}, True, id="by label"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"team": "y"}, False, id="by another label"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, None, False, id="unknown namespace"),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, {"team": "x"}, True,
            id="a selector that matches nothing at all",
        ),
    ],
)  # fmt: skip
def test_a_term_sees_the_namespaces_it_names(more: Document, namespace_labels: Document | None, is_seen: bool) -> None:
    other = pod("web", "web", on="n2")
    other["metadata"]["namespace"] = "other"
    known = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": namespace_labels}}]
    session = session_of(other, known if namespace_labels is not None else [], waiting(pod("new", affinity=apart(term(**more)))))
    assert (open_nodes(session) == ["n0", "n1"]) is is_seen


def test_a_term_without_a_selector_is_about_nobody() -> None:
    nobody = {"topologyKey": "zone"}
    session = session_of(pod("web", "web", on="n2"), waiting(pod("new", affinity=apart(nobody))))
    assert len(open_nodes(session)) == 4


def test_wishes_pull_and_push_and_are_scaled_to_the_candidates() -> None:
    running = [pod("web", "web", on="n2"), pod("db", "db", on="n0")]
    pull = session_of(running, waiting(pod("new", affinity=wishes("podAffinity", 10, term("web")))))
    assert scores(pull) == [0.0, 0.0, 200.0, 200.0]
    push = session_of(running, waiting(pod("new", affinity=wishes("podAntiAffinity", 10, term("db", "kubernetes.io/hostname")))))
    assert scores(push) == [0.0, 200.0, 200.0, 200.0]


def test_wishes_of_running_pods_count_for_newcomers_and_their_requirements_do_not() -> None:
    wishing = pod("old", "web", on="n2", affinity=wishes("podAffinity", 10, term("new")))
    assert scores(session_of(wishing, waiting(pod("new", "new")))) == [0.0, 0.0, 200.0, 200.0]
    requiring = pod("old", "new", on="n2", affinity=near(term("new")))
    assert scores(session_of(requiring, waiting(pod("new", "new")))) == [0.0, 0.0, 0.0, 0.0]


def test_only_shapes_that_somebody_is_about_are_placed_one_by_one() -> None:
    session = session_of(pod("old", "web", on="n0", affinity=apart(term("web"))), waiting(pod("new", "web"), pod("far", "db")))
    assert not session.is_local(task(session, "new").task.shape)
    assert session.is_local(task(session, "far").task.shape)


def test_soft_spread_prefers_domains_with_fewer_matching_pods() -> None:
    soft = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    new = pod("new", "web")
    new["spec"]["topologySpreadConstraints"] = [{**soft, "labelSelector": {"matchLabels": {"app": "web"}}}]
    running = [pod("web-0", "web", on="n0"), pod("web-1", "web", on="n1"), pod("web-2", "web", on="n2")]
    found = scores(session_of(running, waiting(new)))
    assert found[0] == found[1] < found[2] == found[3]


def test_a_service_spreads_its_pods_without_being_asked() -> None:
    service: Document = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": "web"}}
    service["spec"] = {"selector": {"app": "web"}}
    found = scores(session_of(service, pod("web-0", "web", on="n0"), waiting(pod("new", "web"))))
    assert found[0] < found[1]
    assert found[1] == found[2] == found[3]


def test_the_index_counts_pods_per_node_and_follows_the_session() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": "web"}}
    reader = {**service, "spec": {"selector": {"app": "web"}}}
    session = session_of(reader, pod("web-0", "web", on="n0"), pod("web-1", "web", on="n0"), waiting(pod("new", "web")))
    index = session.book(PodIndex)

    def count() -> list[int]:
        def is_web(shape: Shape, is_terminating: bool) -> bool:
            return shape.labels.get("app") == "web" and not is_terminating

        return [int(number) for number in index.count("web", is_web)]

    assert count() == [2, 0, 0, 0]
    with session.statement() as statement:
        statement.allocate([task(session, "new")], [3])
        assert count() == [2, 0, 0, 1]
    assert count() == [2, 0, 0, 0]
