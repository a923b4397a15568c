"""Disruption budgets and evictions."""

from phalanx.config.builtin import CATALOGUE
from phalanx.model.task import GangKey, TaskKey
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.testing import build
from phalanx.testing.build import Document

HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}


def budget(name: str, allowed: int, namespace: str = "default", **labels: str) -> Document:
    spec = {"selector": {"matchLabels": labels}}
    meta = {"namespace": namespace, "name": name}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec,
        "status": {"disruptionsAllowed": allowed},
    }  # fmt: skip


def running(*labels: dict[str, str], nodes: int = 1) -> list[Document]:
    pods = [build.pod(f"web-{number}", group="web", on=f"node-{number % nodes}", cpu=2) for number in range(len(labels))]
    for pod, marks in zip(pods, labels, strict=True):
        pod["metadata"]["labels"] = marks
    return [build.pod_group("web", min_member=0, phase="Running"), *pods]


def session_with(*objects: Document, arguments: Document | None = None) -> Session:
    policy = build.policy([[{"name": "pdb", "arguments": arguments or {}}]], actions="shuffle")
    cluster = build.cluster(nodes=1, policy=policy).submit(objects)
    return open_session(cluster.objects.snapshot(0.0), policy, CATALOGUE)


def candidates(session: Session, *names: str) -> list[TaskState]:
    gang = session.gang(GangKey("default/web"))
    assert gang is not None
    found = [gang.task(TaskKey(f"default/{name}")) for name in names]
    return [task for task in found if task is not None]


def spared(session: Session, *names: str) -> list[str]:
    """Return whom the plugin does not let go, and check that all kinds of evictions agree."""
    tasks = candidates(session, *names)
    answers = [
        session.preemptable(tasks[0], tasks),
        session.reclaimable(tasks[0], tasks),
        session.evictable(tasks[0], tasks, "preempt"),
        [task for task, _ in session.victim_tasks(tasks)],
    ]
    assert all(answer == answers[0] for answer in answers)
    return [task.task.name for task in tasks if task not in answers[0]]


def test_without_budgets_every_pod_with_labels_may_go() -> None:
    assert spared(session_with(*running({"app": "web"}, {"app": "db"})), "web-0", "web-1") == []


def test_a_budget_that_allows_no_disruption_protects_its_pods() -> None:
    assert spared(session_with(budget("web", 0, app="web"), *running({"app": "web"}, {"app": "db"})), "web-0", "web-1") == ["web-0"]


def test_candidates_go_in_their_order_until_the_budget_is_used_up() -> None:
    session = session_with(budget("web", 1, app="web"), *running({"app": "web"}, {"app": "web"}))
    assert spared(session, "web-0", "web-1") == ["web-1"]
    assert spared(session, "web-1", "web-0") == ["web-0"]


def test_a_pod_needs_every_budget_that_covers_it_and_a_spared_pod_uses_none() -> None:
    budgets = [budget("web", 0, app="web"), budget("blue", 1, colour="blue")]
    session = session_with(*budgets, *running({"app": "web", "colour": "blue"}, {"colour": "blue"}))
    assert spared(session, "web-0", "web-1") == ["web-0"]


def test_a_budget_of_another_namespace_does_not_matter() -> None:
    assert spared(session_with(budget("web", 0, "other", app="web"), *running({"app": "web"})), "web-0") == []


def test_pods_without_labels_are_spared_unless_the_setting_says_otherwise() -> None:
    assert spared(session_with(*running({}, {"app": "web"})), "web-0", "web-1") == ["web-0"]
    assert spared(session_with(*running({}, {"app": "web"}), arguments={"pdb.spareUnlabelled": False}), "web-0", "web-1") == []


def test_evictions_of_the_session_count_and_count_no_more_when_undone() -> None:
    session = session_with(budget("web", 1, app="web"), *running({"app": "web"}, {"app": "web"}))
    first, _ = candidates(session, "web-0", "web-1")
    with session.statement() as statement:
        statement.evict(first, action="preempt", preemptor="default/high", reason="")
        assert spared(session, "web-1") == ["web-1"]
    assert spared(session, "web-1") == []


def test_preemptors_on_two_nodes_do_not_overdraw_one_budget() -> None:
    policy = build.policy([["priority", "pdb"]], actions="preempt")
    cluster = build.cluster(nodes=2, policy=policy, cpu=2)
    cluster.submit(HIGH, budget("web", 1, app="web"), running({"app": "web"}, {"app": "web"}, nodes=2))
    cluster.submit(build.pod_group("high", min_member=1, phase="Inqueue", priorityClassName="high"))
    cluster.submit(build.pod(f"high-{number}", group="high", cpu=2) for number in range(2))
    assert len(cluster.run_cycle().decisions.evictions) == 1
