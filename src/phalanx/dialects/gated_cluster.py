"""The cluster as it would be if our scheduling gates were lifted, for a session that plans gangs behind them.

A pod that only our gate holds back is a candidate for a node; a pod of a plan that is being carried out is on the node of the plan.
Pods that have other gates as well stay gated. A session on this cluster answers whether a whole gang would find room, and where.

The scheduler that later binds the pods knows nothing of plans and keeps no room free for them. Pods without a gang that wait for it
may therefore take the room at any moment. So that no plan counts on room that they will take, they come first here: each is a gang
of its own with a priority above all others.
"""

from dataclasses import replace

from phalanx.dialects.cluster import Document, ObjectCluster
from phalanx.dialects.gates import GangGates, GatePlan, placed, plan_of, plans
from phalanx.model.gang import Gang
from phalanx.model.kinds import object_key
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import Status
from phalanx.session.decision import Decisions

FIRST = 2**31
"""Priority above every one that a PriorityClass may have."""


class GatedCluster(ObjectCluster):
    """Reads objects as every cluster does, but pods behind our gate as if it were lifted.

    A plan has begun as soon as the gate of one of its pods is lifted. From then on all pods of the plan count as placed, because
    the gates of the others will be lifted too: to plan them again could tear the gang apart.
    """

    def __init__(self, gates: GangGates | None = None) -> None:
        """Start without pods; `gates` are ours."""
        super().__init__()
        self._gates = gates or GangGates()
        self.held: dict[TaskKey, Document] = {}
        """Pods that only our gate holds back and whose plan has not begun."""
        self._plan_by_pod: dict[TaskKey, str] = {}
        self._lifted: dict[str, dict[TaskKey, Document]] = {}
        """Pods whose gate is lifted, by the name of their plan; such a plan has begun."""
        self._waiting: dict[str, dict[TaskKey, Document]] = {}
        """Pods that carry a plan and are still gated, by its name."""

    def put(self, document: Document) -> bool:
        """Enter an object; a pod as it will be once its gate is lifted."""
        if document.get("kind") != "Pod":
            return super().put(document)
        key, plan = TaskKey(object_key(document)), plan_of(document)
        # The pod may leave one plan and join another: both may begin or end by that.
        before = self._begun(self._plan_by_pod.get(key), None if plan is None else plan.id)
        self._forget(key)
        found = self._enter(key, document)
        if plan is not None:
            self._note(key, plan.id, document)
        self._reenter(before)
        return found

    def remove(self, document: Document) -> bool:
        """Remove an object."""
        found = super().remove(document)
        if document.get("kind") == "Pod":
            key = TaskKey(object_key(document))
            before = self._begun(self._plan_by_pod.get(key))
            self._forget(key)
            self._put_ahead(key)
            self._reenter(before)
        return found

    def _enter(self, key: TaskKey, document: Document) -> bool:
        plan, is_held = plan_of(document), self._gates.alone_hold(document)
        is_placed = is_held and plan is not None and plan.id in self._lifted
        self.held.pop(key, None)
        found = super().put(placed(document) if is_placed else self._gates.foreseen(document))
        self._put_ahead(key)
        if is_held and not is_placed:
            self.held[key] = document
        return found

    # --- plans that have begun ---------------------------------------------------------------------------------------

    def _begun(self, *names: str | None) -> dict[str, bool]:
        """Return which of these plans have begun."""
        return {name: name in self._lifted for name in names if name is not None}

    def _note(self, key: TaskKey, name: str, document: Document) -> None:
        self._plan_by_pod[key] = name
        pods_by_plan = self._waiting if self._gates.of(document) else self._lifted
        pods_by_plan.setdefault(name, {})[key] = document

    def _forget(self, key: TaskKey) -> None:
        self.held.pop(key, None)
        name = self._plan_by_pod.pop(key, "")
        for pods_by_plan in (self._lifted, self._waiting):
            pods = pods_by_plan.get(name, {})
            pods.pop(key, None)
            if not pods:
                pods_by_plan.pop(name, None)

    def _reenter(self, before: dict[str, bool]) -> None:
        """Enter the other pods of plans again that have just begun, or whose last lifted pod is gone."""
        for name, had_begun in before.items():
            if had_begun is not (name in self._lifted):
                for key, document in self._waiting.get(name, {}).items():
                    self._enter(key, document)

    # --- pods without a gang -----------------------------------------------------------------------------------------

    def _put_ahead(self, key: TaskKey) -> None:
        """Make a gang of a pod that waits without one, ahead of all others."""
        task, alone = self.state.task(key), GangKey(f"{key}@alone")
        self.state.drop_gang(alone)
        if task is None or task.gang is not None or task.is_gated or task.status is not Status.PENDING:
            return
        self.state.put_gang(Gang(key=alone, own_priority=FIRST, created=task.created, dialect="gates", has_object=False))
        self.state.put_task(replace(task, gang=alone))

    def held_gangs(self) -> set[GangKey]:
        """Return the gangs with a pod that only our gate holds back."""
        tasks = (self.state.task(key) for key in self.held)
        return {task.gang for task in tasks if task is not None and task.gang is not None}

    def new_plans(self, decisions: Decisions, now: float) -> dict[TaskKey, GatePlan]:
        """Return the plans to write after a session: for gated pods that found room, unless they carry the same fresh plan."""
        node_by_pod_by_gang: dict[str, dict[TaskKey, str]] = {}
        for key, node in decisions.binds.items():
            task = self.state.task(key) if key in self.held else None
            if task is not None:
                node_by_pod_by_gang.setdefault(task.gang or key, {})[key] = node
        found: dict[TaskKey, GatePlan] = {}
        for node_by_pod in node_by_pod_by_gang.values():
            gates = {key: self._gates.of(self.held[key]) for key in node_by_pod}
            found |= {key: plan for key, plan in plans(node_by_pod, now, gates).items() if not self._carries(key, plan, now)}
        return found

    def _carries(self, key: TaskKey, plan: GatePlan, now: float) -> bool:
        old = plan_of(self.held[key])
        return old is not None and old.id == plan.id and old.is_fresh(now)
