"""The cluster as it would be without our gates: pods that only they hold back are candidates, those of a plan are on its node.

A session on it answers whether a whole gang would find room, and where. Pods that other gates hold back as well stay as they are.
Nothing keeps room free between a plan and the scheduler behind it, so pods that wait for that scheduler without any gang come first
here: it may place them at any moment.
"""

from dataclasses import replace

from phalanx.dialects.cluster import Document, ObjectCluster
from phalanx.dialects.gates import GATE, GatePlan, foreseen, gates_of, placed, plan_of, plans
from phalanx.model.gang import Gang
from phalanx.model.kinds import object_key
from phalanx.model.status import Status
from phalanx.model.task import GangKey, TaskKey
from phalanx.session.decision import Decisions

FIRST = 2**31
"""Above every priority that a class may have."""


class GatedCluster(ObjectCluster):
    """Reads objects as an ordinary cluster does, but looks behind our gate.

    Of a plan that was begun all pods are on their nodes, lifted or not: whoever lifts gates finishes it, and nobody plans anew.
    """

    def __init__(self) -> None:
        """Begin with nobody held back."""
        super().__init__()
        self.held: dict[TaskKey, Document] = {}
        """Pods that only our gate holds back and that may be planned for."""
        self._plan_by_pod: dict[TaskKey, str] = {}
        self._lifted: dict[str, dict[TaskKey, Document]] = {}
        """Pods that our gate let through, by the name of their plan; such a plan was begun."""
        self._waiting: dict[str, dict[TaskKey, Document]] = {}
        """Pods that carry a plan and are still held back, by its name."""

    def put(self, document: Document) -> bool:
        """Enter an object; a pod as it will be."""
        if document.get("kind") != "Pod":
            return super().put(document)
        key, plan = TaskKey(object_key(document)), plan_of(document)
        before = self._begun(self._plan_by_pod.get(key), None if plan is None else plan.id)
        self._forget(key)
        found = self._enter(key, document)
        if plan is not None:
            self._note(key, plan.id, document)
        self._follow(before)
        return found

    def remove(self, document: Document) -> bool:
        """Take an object away."""
        found = super().remove(document)
        if document.get("kind") == "Pod":
            key = TaskKey(object_key(document))
            before = self._begun(self._plan_by_pod.get(key))
            self._forget(key)
            self._let_go_first(key)
            self._follow(before)
        return found

    def _enter(self, key: TaskKey, document: Document) -> bool:
        plan, is_held = plan_of(document), gates_of(document) == [GATE]
        is_placed = is_held and plan is not None and plan.id in self._lifted
        self.held.pop(key, None)
        found = super().put(placed(document) if is_placed else foreseen(document))
        self._let_go_first(key)
        if is_held and not is_placed:
            self.held[key] = document
        return found

    # --- plans that were begun ---------------------------------------------------------------------------------------

    def _begun(self, *names: str | None) -> dict[str, bool]:
        return {name: name in self._lifted for name in names if name is not None}

    def _note(self, key: TaskKey, name: str, document: Document) -> None:
        self._plan_by_pod[key] = name
        pods_by_plan = self._waiting if GATE in gates_of(document) else self._lifted
        pods_by_plan.setdefault(name, {})[key] = document

    def _forget(self, key: TaskKey) -> None:
        self.held.pop(key, None)
        name = self._plan_by_pod.pop(key, "")
        for pods_by_plan in (self._lifted, self._waiting):
            pods = pods_by_plan.get(name, {})
            pods.pop(key, None)
            if not pods:
                pods_by_plan.pop(name, None)

    def _follow(self, before: dict[str, bool]) -> None:
        """Enter the other pods of a plan anew that was begun just now, or of which nothing that was lifted is left."""
        for name, had_begun in before.items():
            if had_begun is not (name in self._lifted):
                for key, document in self._waiting.get(name, {}).items():
                    self._enter(key, document)

    # --- pods without a gang -----------------------------------------------------------------------------------------

    def _let_go_first(self, key: TaskKey) -> None:
        """Make a pod that waits without a gang one of its own, ahead of all others."""
        task, alone = self.state.task(key), GangKey(f"{key}@alone")
        self.state.drop_gang(alone)
        if task is None or task.gang is not None or task.is_gated or task.status is not Status.PENDING:
            return
        self.state.put_gang(Gang(key=alone, own_priority=FIRST, created=task.created, dialect="gates", has_object=False))
        self.state.put_task(replace(task, gang=alone))

    def held_gangs(self) -> set[GangKey]:
        """Return the gangs of which some pod is held back."""
        tasks = (self.state.task(key) for key in self.held)
        return {task.gang for task in tasks if task is not None and task.gang is not None}

    def new_plans(self, decisions: Decisions, now: float) -> dict[TaskKey, GatePlan]:
        """Return the plans to write after a session: one for each gang of which held pods found room, unless they carry it."""
        node_by_pod_by_gang: dict[str, dict[TaskKey, str]] = {}
        for key, node in decisions.binds.items():
            task = self.state.task(key) if key in self.held else None
            if task is not None:
                node_by_pod_by_gang.setdefault(task.gang or key, {})[key] = node
        found: dict[TaskKey, GatePlan] = {}
        for node_by_pod in node_by_pod_by_gang.values():
            found |= {key: plan for key, plan in plans(node_by_pod, now).items() if not self._carries(key, plan, now)}
        return found

    def _carries(self, key: TaskKey, plan: GatePlan, now: float) -> bool:
        old = plan_of(self.held[key])
        return old is not None and old.id == plan.id and old.is_fresh(now)
