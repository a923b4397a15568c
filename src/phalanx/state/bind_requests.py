"""What bind requests make of tasks. A request that the binder may still carry out gives its waiting task a node; one that failed
for good is remembered by the task. Requests, pods and nodes may come in any order, so tasks are kept as they are without requests
too: a request that goes leaves the task as it was, whatever came in between.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from phalanx.model.bind_request import BindRequest, remember
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status


class BindRequests:
    """Requests by key, by task and by node, and the tasks they are for as they are without them."""

    def __init__(self) -> None:
        """Start with none."""
        self.by_key: dict[str, BindRequest] = {}
        self._by_task: dict[TaskKey, dict[str, BindRequest]] = {}
        self._without_requests: dict[TaskKey, Task] = {}

    def put(self, request: BindRequest) -> None:
        """Add a request."""
        self.by_key[request.key] = request
        self._by_task.setdefault(request.task, {})[request.key] = request

    def drop(self, key: str) -> BindRequest | None:
        """Take a request away and return it."""
        request = self.by_key.pop(key, None)
        if request is not None:
            rest = self._by_task[request.task]
            del rest[key]
            if not rest:
                del self._by_task[request.task]
        return request

    def tasks_for(self, node: str) -> list[TaskKey]:
        """Return the tasks that requests want on a node."""
        return [request.task for request in self.by_key.values() if request.node == node]

    def without_requests(self, key: TaskKey) -> Task | None:
        """Return a task as it is without requests, if some request is for it."""
        return self._without_requests.get(key)

    def forget(self, key: TaskKey) -> None:
        """Forget a task that is gone."""
        self._without_requests.pop(key, None)

    def with_requests(self, task: Task, nodes: Collection[str]) -> Task:
        """Return a task with what its requests make of it, the first by name among several."""
        if task.key not in self._by_task:
            return task
        self._without_requests[task.key] = task
        requests = [request for _, request in sorted(self._by_task[task.key].items()) if request.is_for(task)]
        for request in requests:
            if request.has_failed and not request.is_rolled_back:
                task = replace(task, failed_binds=remember(task.failed_binds, request.failure))
        live = next((request for request in requests if not request.has_failed and request.node in nodes), None)
        if live is None or task.status is not Status.PENDING:
            return task
        return replace(task, status=Status.BINDING, node=live.node, gpu_groups=live.gpu_groups or task.gpu_groups)

    def lost(self, tasks: Mapping[TaskKey, Task], nodes: Collection[str]) -> dict[str, str]:
        """Return the requests that the binder will never carry out, each with the reason."""
        reasons = {key: _loss(request, tasks.get(request.task), nodes) for key, request in sorted(self.by_key.items())}
        return {key: reason for key, reason in reasons.items() if reason}


def _loss(request: BindRequest, task: Task | None, nodes: Collection[str]) -> str:
    if task is None or not request.is_for(task):
        return f"pod {request.task} is gone"
    if request.node not in nodes:
        return f"node {request.node} is gone"
    return "it failed for good" if request.has_failed else ""
