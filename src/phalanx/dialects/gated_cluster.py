"""The cluster as it would be without our gates: pods that only they hold back are candidates, those of a plan are on its node.

A session on it answers whether a whole gang would find room, and where. Pods that other gates hold back as well stay as they are.
Nothing keeps room free between a plan and the scheduler behind it, so pods that wait for that scheduler without any gang come first
here: it may place them at any moment.
"""

from dataclasses import replace

from phalanx.core.decision import Decisions
from phalanx.dialects.cluster import Document, ObjectCluster
from phalanx.dialects.gates import GATE, Plan, foreseen, gates_of, plan_of, plans
from phalanx.model.gang import Gang
from phalanx.model.kinds import object_key
from phalanx.model.status import Status
from phalanx.model.task import GangKey, TaskKey

FIRST = 2**31
"""Above every priority that a class may have."""


class GatedCluster(ObjectCluster):
    """Reads objects as an ordinary cluster does, but looks behind our gate."""

    def __init__(self) -> None:
        """Begin with nobody held back."""
        super().__init__()
        self.held: dict[TaskKey, Plan | None] = {}
        """Pods that only our gate holds back, with the plan that they carry."""

    def put(self, document: Document) -> bool:
        """Enter an object; a pod as it will be."""
        if document.get("kind") != "Pod":
            return super().put(document)
        self.held.pop(TaskKey(object_key(document)), None)
        found = super().put(foreseen(document))
        self._let_go_first(TaskKey(object_key(document)))
        if gates_of(document) == [GATE]:
            self.held[TaskKey(object_key(document))] = plan_of(document)
        return found

    def remove(self, document: Document) -> bool:
        """Take an object away."""
        found = super().remove(document)
        if document.get("kind") == "Pod":
            self.held.pop(TaskKey(object_key(document)), None)
            self._let_go_first(TaskKey(object_key(document)))
        return found

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

    def new_plans(self, decisions: Decisions, now: float) -> dict[TaskKey, Plan]:
        """Return the plans to write after a session: one for each gang of which held pods found room, unless they carry it."""
        node_by_pod_by_gang: dict[str, dict[TaskKey, str]] = {}
        for key, node in decisions.binds.items():
            task = self.state.task(key) if key in self.held else None
            if task is not None:
                node_by_pod_by_gang.setdefault(task.gang or key, {})[key] = node
        found: dict[TaskKey, Plan] = {}
        for node_by_pod in node_by_pod_by_gang.values():
            found |= {key: plan for key, plan in plans(node_by_pod, now).items() if not self._carries(key, plan, now)}
        return found

    def _carries(self, key: TaskKey, plan: Plan, now: float) -> bool:
        old = self.held[key]
        return old is not None and old.id == plan.id and old.is_fresh(now)
